#include "core/functions/operator_names.h"

#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>

namespace rehearsal {

std::vector<c10::OperatorHandle> operators_named(const std::string& name) {
  if (const size_t dot = name.find('.'); dot != std::string::npos) {
    const auto found =
        c10::Dispatcher::singleton().findSchema({name.substr(0, dot), name.substr(dot + 1)});
    return found ? std::vector{*found} : std::vector<c10::OperatorHandle>();
  }
  const size_t colons = name.find("::");
  if (colons == std::string::npos || colons == 0 || colons + 2 == name.size()) return {};
  std::vector<c10::OperatorHandle> overloads;
  for (const auto& known : torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(name))) {
    if (!known->isC10Op()) continue;
    if (auto found = c10::Dispatcher::singleton().findSchema(known->schema().operator_name()))
      overloads.push_back(*found);
  }
  std::ranges::sort(overloads, {}, [](const c10::OperatorHandle& overload) {
    return overload.schema().overload_name();
  });
  return overloads;
}

std::string full_name(const c10::OperatorHandle& overload) {
  const auto& schema = overload.schema();
  return schema.overload_name().empty() ? schema.name()
                                        : schema.name() + "." + schema.overload_name();
}

}  // namespace rehearsal
