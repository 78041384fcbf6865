#include "sim/world/fault_classes.h"

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
    case FaultClass::corruption:
      return "corruption";
    case FaultClass::refusals:
      return "refusals";
    case FaultClass::hangs:
      return "hangs";
    case FaultClass::unheard_losses:
      return "unheard_losses";
    case FaultClass::bandwidth:
      return "bandwidth";
    case FaultClass::buffers:
      return "buffers";
    case FaultClass::clocks:
      return "clocks";
    case FaultClass::partitions:
      return "partitions";
    case FaultClass::clogs:
      return "clogs";
    case FaultClass::pauses:
      return "pauses";
    case FaultClass::slow_workers:
      return "slow_workers";
    case FaultClass::short_lives:
      return "short_lives";
    case FaultClass::crashes:
      return "crashes";
    case FaultClass::madness:
      return "madness";
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
