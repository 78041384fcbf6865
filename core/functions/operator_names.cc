#include "core/functions/operator_names.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace rehearsal {
namespace {

using Overloads = std::vector<std::string>;

// That without a name comes first.
std::vector<c10::OperatorHandle> in_order(const std::string& name, Overloads overloads) {
  std::ranges::sort(overloads);
  std::vector<c10::OperatorHandle> handles;
  for (const std::string& overload : overloads)
    if (auto found = c10::Dispatcher::singleton().findSchema({name, overload}))
      handles.push_back(*found);
  return handles;
}

// The name and the overload, if the name has one.
std::optional<std::pair<std::string, std::string>> parts_of(const std::string& name) {
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return std::nullopt;
  return std::pair(name.substr(0, dot), name.substr(dot + 1));
}

std::map<std::string, Overloads> all_names() {
  std::map<std::string, Overloads> names;
  for (const c10::OperatorName& known : c10::Dispatcher::singleton().getAllOpNames())
    names[known.name].push_back(known.overload_name);
  return names;
}

}  // namespace

// LibTorch's own look-ups of a name make a symbol of it, which stays for ever.
std::vector<c10::OperatorHandle> operators_named(const std::string& name) {
  if (const auto parts = parts_of(name)) return in_order(parts->first, {parts->second});
  static const std::map<std::string, Overloads> names = all_names();
  const auto known = names.find(name);
  return in_order(name, known == names.end() ? Overloads{""} : known->second);
}

std::vector<c10::OperatorHandle> operators_now_named(const std::string& name) {
  if (const auto parts = parts_of(name)) return in_order(parts->first, {parts->second});
  Overloads overloads;
  for (const c10::OperatorName& known : c10::Dispatcher::singleton().getAllOpNames())
    if (known.name == name) overloads.push_back(known.overload_name);
  return in_order(name, std::move(overloads));
}

std::string full_name(const c10::OperatorHandle& overload) {
  const auto& schema = overload.schema();
  return schema.overload_name().empty() ? schema.name()
                                        : schema.name() + "." + schema.overload_name();
}

}  // namespace rehearsal
