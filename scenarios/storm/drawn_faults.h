#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "command_line/scenario.h"
#include "core/base/hash.h"
#include "scenarios/storm/dice.h"

namespace rehearsal::storm {

// The faults that a seed means for a scenario that no crash may surprise: half of the seeds are
// hostile, `crash_percent` of them lose a worker, and of these in `restart_percent` it may come
// back.
[[nodiscard]] inline ScenarioFaults draw_faults(Seed seed, uint64_t crash_percent,
                                                uint64_t restart_percent) {
  Dice dice(seed, hash_text("faults"));
  ScenarioFaults plan;
  plan.faults = dice.happens(50) ? sim::FaultLevel::hostile : sim::FaultLevel::mild;
  plan.crashes = dice.happens(crash_percent) ? 1 : 0;
  if (plan.crashes > 0 && dice.happens(restart_percent)) plan.restarts = sim::Restart::drawn;
  return plan;
}

// Where no worker could be lost nothing is: why a run has failed that has a number above zero whose
// name begins so.
[[nodiscard]] inline std::optional<std::string> unexcused(const Results& results,
                                                          const ScenarioFaults& plan,
                                                          const std::string& losses) {
  if (plan.crashes > 0 || plan.long_partitions || plan.long_pauses) return std::nullopt;
  for (const auto& [name, number] : results.numbers())
    if (name.starts_with(losses) && number > 0)
      return name + ": " + std::to_string(static_cast<int64_t>(number)) +
             ", although no worker was lost";
  return std::nullopt;
}

}  // namespace rehearsal::storm
