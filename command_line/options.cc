#include "command_line/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "command_line/suggestion.h"
#include "command_line/wrong_use.h"
#include "core/base/hash.h"

namespace rehearsal {
namespace {

constexpr const char* kSize = "size";
constexpr const char* kFull = "full";
constexpr const char* kTiny = "tiny";

// Distinguishes what options a seed draws from what else it draws.
constexpr uint64_t kDrawn = 0x6472617765;

template <class... Functions>
struct Visitor : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Visitor(Functions...) -> Visitor<Functions...>;

std::string show(double value) {
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  return {digits, end.ptr};
}

std::string show(const Options::Value& value) {
  return std::visit(Visitor{[](int64_t number) { return std::to_string(number); },
                            [](double number) { return show(number); },
                            [](const std::string& text) { return text; }},
                    value);
}

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::string range(int64_t min, int64_t max) {
  return std::to_string(min) + " to " + std::to_string(max);
}

std::string allowed(const OptionTable::Integer& option) {
  return "a whole number from " + range(option.min, option.max);
}
std::string allowed(const OptionTable::Real& option) {
  return "a number from " + show(option.min) + " to " + show(option.max);
}
std::string allowed(const OptionTable::Choice& option) { return joined(option.allowed, " or "); }
std::string allowed(const OptionTable::Path&) { return "a file"; }

// The text of `list` for an option: it also says what a search does with it.
template <class Option>
std::string allowed_and_drawn(const Option& option) {
  return allowed(option);
}
std::string allowed_and_drawn(const OptionTable::Integer& option) {
  if (option.drawn_min == option.drawn_max) return allowed(option);
  return allowed(option) + "; a hunt draws " + range(option.drawn_min, option.drawn_max);
}

template <class Number>
bool parse_number(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && stop == end;
}

[[noreturn]] void refuse(const std::string& name, const std::string& text,
                         const std::string& rule) {
  throw WrongUse("--set " + name + "=" + text + ": " + name + " is " + rule);
}

template <class Number, class Option>
Options::Value parse_in_range(const std::string& name, const std::string& text,
                              const Option& option) {
  Number number{};
  if (!parse_number(text, number)) refuse(name, text, allowed(option));
  const bool inside = number >= option.min && number <= option.max;  // false for a NaN
  if (!inside) refuse(name, text, allowed(option));
  return number;
}

struct ValueParser {
  const std::string& name;
  const std::string& text;

  Options::Value operator()(const OptionTable::Integer& option) const {
    return parse_in_range<int64_t>(name, text, option);
  }
  Options::Value operator()(const OptionTable::Real& option) const {
    return parse_in_range<double>(name, text, option);
  }
  Options::Value operator()(const OptionTable::Choice& option) const {
    const bool known =
        std::find(option.allowed.begin(), option.allowed.end(), text) != option.allowed.end();
    if (!known) refuse(name, text, allowed(option));
    return text;
  }
  Options::Value operator()(const OptionTable::Path&) const {
    if (text.empty()) refuse(name, text, "a file");
    return std::filesystem::absolute(text).lexically_normal().string();
  }
};

template <class Kind>
Options::Value default_value(const Kind& kind, const std::string& size) {
  return std::visit(
      Visitor{[&](const OptionTable::Integer& o) -> Options::Value {
                return size == kTiny ? o.tiny : o.full;
              },
              [&](const OptionTable::Real& o) -> Options::Value {
                return size == kTiny ? o.tiny : o.full;
              },
              [](const OptionTable::Choice& o) -> Options::Value { return o.allowed.front(); },
              [](const OptionTable::Path& o) -> Options::Value { return o.otherwise; }},
      kind);
}

struct Assignment {
  std::string name;
  std::string text;
};

Assignment split(const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw WrongUse("--set " + assignment + ": type --set key=value");
  }
  return {assignment.substr(0, equals), assignment.substr(equals + 1)};
}

template <class T>
const T& typed(const std::map<std::string, Options::Value>& values, const std::string& name) {
  const auto found = values.find(name);
  const T* value = found == values.end() ? nullptr : std::get_if<T>(&found->second);
  if (value == nullptr) throw std::out_of_range("no option '" + name + "' of this type");
  return *value;
}

}  // namespace

int64_t Options::integer(const std::string& name) const { return typed<int64_t>(values_, name); }
double Options::real(const std::string& name) const { return typed<double>(values_, name); }
const std::string& Options::text(const std::string& name) const {
  return typed<std::string>(values_, name);
}

std::map<std::string, std::string> Options::all() const {
  std::map<std::string, std::string> shown;
  for (const auto& [name, value] : values_) shown.emplace(name, show(value));
  return shown;
}

OptionTable::OptionTable() {
  choice(kSize, {{kFull, kTiny}, "tiny: at most 0.2 s in the simulator, every step present"});
}

OptionTable& OptionTable::integer(const std::string& name, Integer option) {
  entries_.push_back({name, std::move(option)});
  return *this;
}
OptionTable& OptionTable::real(const std::string& name, Real option) {
  entries_.push_back({name, std::move(option)});
  return *this;
}
OptionTable& OptionTable::choice(const std::string& name, Choice option) {
  entries_.push_back({name, std::move(option)});
  return *this;
}
OptionTable& OptionTable::path(const std::string& name, Path option) {
  entries_.push_back({name, std::move(option)});
  return *this;
}

std::vector<std::string> OptionTable::names() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.name);
  return names;
}

const OptionTable::Entry* OptionTable::find(const std::string& name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

Options OptionTable::parse(const std::vector<std::string>& assignments,
                           const std::string& default_size) const {
  std::map<std::string, Options::Value> given;
  for (const std::string& assignment : assignments) {
    const auto [name, text] = split(assignment);
    const Entry* entry = find(name);
    if (entry == nullptr) {
      throw WrongUse("--set " + assignment + ": no such option; " + suggestion(name, names()));
    }
    given[name] = std::visit(ValueParser{name, text}, entry->kind);
  }
  const auto size_given = given.find(kSize);
  const std::string size =
      size_given == given.end() ? default_size : std::get<std::string>(size_given->second);
  Options options;
  for (const Entry& entry : entries_) {
    const bool is_size = entry.name == kSize;
    const Options::Value otherwise =
        is_size ? Options::Value(size) : default_value(entry.kind, size);
    const auto found = given.find(entry.name);
    const Options::Value& value = found == given.end() ? otherwise : found->second;
    options.values_.emplace(entry.name, value);
    if (found != given.end()) options.given_.insert(entry.name);
    const Options::Value run_default = is_size ? Options::Value(std::string(kFull)) : otherwise;
    if (value != run_default) options.assignments_.push_back(entry.name + "=" + show(value));
  }
  return options;
}

Options OptionTable::drawn(const Options& options, Seed seed) const {
  if (options.given_.contains(kSize)) return options;
  std::vector<std::string> assignments = options.assignments();
  for (const Entry& entry : entries_) {
    const Integer* kind = std::get_if<Integer>(&entry.kind);
    if (kind == nullptr || kind->drawn_min == kind->drawn_max) continue;
    if (options.given_.contains(entry.name)) continue;
    const auto values = static_cast<uint64_t>(kind->drawn_max - kind->drawn_min) + 1;
    const uint64_t drawn = mix(mix(seed.value, kDrawn), hash_text(entry.name)) >> 32;
    const int64_t value = kind->drawn_min + static_cast<int64_t>(drawn * values >> 32);
    assignments.push_back(entry.name + "=" + std::to_string(value));
  }
  return parse(assignments, kFull);
}

std::vector<Options> OptionTable::smaller(const Options& options) const {
  std::vector<Options> result;
  for (const Entry& entry : entries_) {
    const Integer* kind = std::get_if<Integer>(&entry.kind);
    if (kind == nullptr) continue;
    const int64_t value = options.integer(entry.name);
    const std::set<int64_t> less = {kind->min, kind->min + (value - kind->min) / 2, value - 1};
    for (const int64_t number : less) {
      if (number >= value || number < kind->min) continue;
      std::vector<std::string> assignments = options.assignments();
      assignments.push_back(entry.name + "=" + std::to_string(number));
      result.push_back(parse(assignments, "full"));
    }
  }
  return result;
}

std::map<std::string, std::string> OptionTable::shared(const Options& options) const {
  std::map<std::string, std::string> values = options.all();
  for (const Entry& entry : entries_)
    if (std::holds_alternative<Path>(entry.kind)) values.erase(entry.name);
  return values;
}

std::vector<OptionTable::Line> OptionTable::lines() const {
  std::vector<Line> lines;
  for (const Entry& entry : entries_) {
    std::visit(
        [&](const auto& option) {
          lines.push_back({entry.name, show(default_value(entry.kind, kFull)),
                           allowed_and_drawn(option), option.meaning});
        },
        entry.kind);
  }
  return lines;
}

}  // namespace rehearsal
