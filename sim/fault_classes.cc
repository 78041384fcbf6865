#include "sim/fault_classes.h"

#include "core/base/check.h"

namespace rehearsal::sim {

std::string_view name_of(FaultClass fault) {
  switch (fault) {
    case FaultClass::delays:
      return "delays";
    case FaultClass::scheduling:
      return "scheduling";
    case FaultClass::retransmissions:
      return "retransmissions";
    case FaultClass::resets:
      return "resets";
    case FaultClass::refusals:
      return "refusals";
    case FaultClass::unheard_losses:
      return "unheard_losses";
    case FaultClass::partitions:
      return "partitions";
    case FaultClass::crashes:
      return "crashes";
  }
  REHEARSAL_CHECK(false, static_cast<int>(fault));
  return {};
}

std::optional<FaultClass> fault_class_named(std::string_view name) {
  for (const FaultClass fault : kFaultClasses)
    if (name == name_of(fault)) return fault;
  return std::nullopt;
}

}  // namespace rehearsal::sim
