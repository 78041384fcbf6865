#include "core/functions/allowed_operators.h"

#include <stdexcept>
#include <vector>

#include "core/functions/operator_names.h"
#include "core/functions/pure_operators.h"

namespace rehearsal {
void AllowedOperators::add(const std::string& name) {
  const std::vector<c10::OperatorHandle> meant = operators_now_named(name);
  if (meant.empty())
    throw std::invalid_argument("LibTorch has no operator '" + name +
                                "': write namespace::name or namespace::name.overload, and load "
                                "the library that registers it first");
  for (const c10::OperatorHandle& overload : meant) added_.insert(full_name(overload));
}

bool AllowedOperators::contains(std::string_view full_name) const {
  return is_pure_operator(full_name) || added_.contains(full_name);
}

}  // namespace rehearsal
