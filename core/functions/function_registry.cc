#include "core/functions/function_registry.h"

#include <cctype>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "core/base/short_text.h"
#include "core/base/symbols.h"
#include "core/functions/script_library.h"

namespace rehearsal {

// Of the address alone: a type's hash would be that of its name's letters.
size_t FunctionRegistry::KeyHash::operator()(const Key& key) const {
  return hash_bytes(key.address.data(), key.address.size());
}

FunctionRegistry& FunctionRegistry::runs_inline() {
  if (functions_.empty()) throw std::invalid_argument("runs_inline comes after a function");
  if (functions_.back().is_stream)
    throw std::invalid_argument("'" + functions_.back().name +
                                "' waits for the caller of its stream: it cannot run inline");
  functions_.back().placement = StackPlacement::inline_;
  return *this;
}

FunctionRegistry& FunctionRegistry::only_waits() {
  if (functions_.empty()) throw std::invalid_argument("only_waits comes after a function");
  functions_.back().only_waits = true;
  return *this;
}

FunctionRegistry& FunctionRegistry::callable_by(std::vector<std::string> callers) {
  if (last_begins_ == functions_.size())
    throw std::invalid_argument("callable_by comes after a function");
  const CallerRule rule(std::move(callers));
  for (size_t i = last_begins_; i < functions_.size(); ++i) functions_[i].callers = rule;
  return *this;
}

FunctionRegistry& FunctionRegistry::operators(const std::vector<std::string>& names) {
  for (const std::string& name : names) operators_.add(name);
  return *this;
}

FunctionRegistry& FunctionRegistry::operators_callable_by(std::vector<std::string> callers) {
  operator_callers_ = CallerRule(std::move(callers));
  return *this;
}

FunctionRegistry& FunctionRegistry::operator_memory_max(uint64_t bytes) {
  operator_memory_max_ = bytes;
  return *this;
}

void FunctionRegistry::add_named(Function function) {
  if (const CallerRule* const callers = callers_of(function.object_type))
    function.callers = *callers;
  const auto position = static_cast<uint32_t>(functions_.size());
  if (!by_name_.emplace(function.name, position).second)
    throw std::invalid_argument("a function named '" + function.name + "' is registered already");
  last_begins_ = position;
  functions_.push_back(std::move(function));
}

void FunctionRegistry::add(Function function, const Key& key) {
  const auto [found, fresh] = by_key_.emplace(key, static_cast<uint32_t>(functions_.size()));
  if (!fresh)
    throw std::invalid_argument("'" + function.name + "' has the address of '" +
                                functions_[found->second].name +
                                "': register it once, or link without folding equal functions "
                                "(--icf=safe)");
  add_named(std::move(function));
}

void FunctionRegistry::add_type(std::type_index type, const std::string& name) {
  const auto [found, fresh] = type_names_.emplace(type, name);
  if (!fresh && found->second != name)
    throw std::invalid_argument("the type '" + name + "' is registered as '" + found->second + "'");
}

Result<uint32_t> FunctionRegistry::find(const Key& key) const {
  const auto found = by_key_.find(key);
  if (found != by_key_.end()) return found->second;
  const bool is_method = key.object_type != typeid(void);
  const std::string name = name_of(key);
  return Error{.kind = ErrorKind::unknown_function,
               .text = "this function is not registered: " + name +
                       (is_method ? "; add it as a method of " + demangled(key.object_type.name()) +
                                        " to the program's FunctionRegistry"
                                  : "; add it to the program's FunctionRegistry"),
               .function = name};
}

// As its symbol names it; else, as for a virtual method, its type.
std::string FunctionRegistry::name_of(const Key& key) {
  uint64_t code = 0;
  std::memcpy(&code, key.address.data(), sizeof code);
  const bool is_virtual = key.object_type != typeid(void) && code % 2 == 1;
  std::string name =
      is_virtual ? "" : ProgramSymbols().function_at(reinterpret_cast<const void*>(code));
  return name.empty() ? "one of type " + demangled(key.function_type.name()) : name;
}

Result<uint32_t> FunctionRegistry::position(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return found->second;
  const std::string known = short_name(name);
  return Error{.kind = ErrorKind::unknown_function,
               .text = "no function named '" + known + "' is registered",
               .function = known};
}

// ---- scripts ----------------------------------------------------------------

void FunctionRegistry::note_script(const std::string& name, const std::string& bytes) {
  constexpr uint64_t kSecondHalf = 0x736372697074;
  std::array<char, 40> version;
  std::snprintf(
      version.data(), version.size(), "%016llx%016llx",
      static_cast<unsigned long long>(hash_bytes(bytes.data(), bytes.size())),
      static_cast<unsigned long long>(hash_bytes(bytes.data(), bytes.size(), kSecondHalf)));
  if (!scripts_.emplace(name, version.data()).second)
    throw std::invalid_argument("a script named '" + name + "' is registered already");
}

FunctionRegistry& FunctionRegistry::script(const std::string& name, const std::string& source) {
  std::vector<Function> functions = compile_script(name, source);
  note_script(name, source);
  const size_t first = functions_.size();
  for (Function& function : functions) add_named(std::move(function));
  last_begins_ = first;
  return *this;
}

FunctionRegistry& FunctionRegistry::script_file(const std::string& name, const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (!in) throw std::invalid_argument("the script '" + name + "' cannot be read from " + path);
  Function function = load_script(name, bytes);
  note_script(name, bytes);
  script_modules();
  add_named(std::move(function));
  return *this;
}

FunctionRegistry& FunctionRegistry::script_modules() {
  if (by_name_.contains("ScriptModule.call")) return *this;
  type<ScriptModule>("ScriptModule")
      .method("call", &ScriptModule::call)
      .method("parameters", &ScriptModule::parameters)
      .method("train", &ScriptModule::train);
  return *this;
}

// ---- look-up ----------------------------------------------------------------

std::string FunctionRegistry::loosen(std::string_view signature) {
  std::string loose;
  for (size_t i = 0; i < signature.size(); ++i) {
    if (signature.substr(i, 4) == "uint") continue;    // its "int" follows
    if (signature.substr(i, 6) == "bfloat") continue;  // its "float" follows
    const bool is_int = signature.substr(i, 3) == "int";
    const bool is_float = signature.substr(i, 5) == "float";
    if (!is_int && !is_float) {
      loose += signature[i];
      continue;
    }
    loose += is_int ? "int" : "float";
    i += is_int ? 2 : 4;
    while (i + 1 < signature.size() && std::isdigit(static_cast<unsigned char>(signature[i + 1])))
      ++i;
  }
  return loose;
}

Result<uint32_t> FunctionRegistry::constructor(std::type_index type,
                                               const std::string& parameters) const {
  const std::string wanted = loosen(parameters);
  std::string known;
  for (uint32_t position = 0; position < functions_.size(); ++position) {
    const Function& function = functions_[position];
    if (!function.is_constructor || function.object_type != type) continue;
    if (loosen(function.parameters) == wanted) return position;
    known += " " + function.name;
  }
  const auto named = type_names_.find(type);
  if (named == type_names_.end())
    return Error{.kind = ErrorKind::unknown_function,
                 .text = "this type is not registered: " + demangled(type.name()) +
                         "; add it to the program's FunctionRegistry by type<T>(\"name\")"};
  return Error{.kind = ErrorKind::bad_arguments,
               .text = "no constructor of " + named->second + " takes (" + parameters +
                       "); there are:" + (known.empty() ? " none" : known),
               .function = named->second};
}

const CallerRule* FunctionRegistry::callers_of(std::type_index type) const {
  const auto found = type_callers_.find(type);
  return found == type_callers_.end() ? nullptr : &found->second;
}

std::string FunctionRegistry::type_name(std::type_index type) const {
  const auto found = type_names_.find(type);
  return found == type_names_.end() ? std::string() : found->second;
}

std::string FunctionRegistry::describe() const {
  size_t bytes = 0;
  for (const Function& function : functions_)
    bytes += function.name.size() + function.parameters.size() + function.result.size() + 24;
  std::string text;
  text.reserve(bytes);
  for (const Function& function : functions_) {
    text.append(function.name).append(" (").append(function.parameters).append(") -> ");
    text.append(function.result).append(function.is_constructor ? " constructor\n" : "\n");
  }
  text += exceptions_.describe();
  for (const auto& [name, version] : scripts_)
    text.append("script ").append(name).append(" ").append(version).append("\n");
  return text;
}

}  // namespace rehearsal
