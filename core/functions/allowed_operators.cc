#include "core/functions/allowed_operators.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "core/functions/operator_names.h"
#include "core/functions/pure_operators.h"

namespace rehearsal {
namespace {

constexpr std::string_view kPrefix = "aten::";

using Names = std::set<std::string_view>;

// Without their prefix.
Names pure_names() {
  Names names;
  for (const OperatorFamily& family : pure_operators()) {
    std::string_view rest = family.names;
    while (!rest.empty()) {
      const std::string_view name = rest.substr(0, rest.find(' '));
      if (!name.empty()) names.insert(name);
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    }
  }
  return names;
}

}  // namespace

void AllowedOperators::add(const std::string& name) {
  const std::vector<c10::OperatorHandle> meant = operators_now_named(name);
  if (meant.empty())
    throw std::invalid_argument("LibTorch has no operator '" + name +
                                "': write namespace::name or namespace::name.overload, and load "
                                "the library that registers it first");
  for (const c10::OperatorHandle& overload : meant) added_.insert(full_name(overload));
}

bool AllowedOperators::contains(std::string_view full_name) const {
  static const Names pure = pure_names();
  if (full_name.starts_with(kPrefix) && pure.contains(full_name.substr(kPrefix.size())))
    return true;
  return added_.contains(full_name);
}

}  // namespace rehearsal
