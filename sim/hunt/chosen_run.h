#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "sim/cluster_options.h"

namespace rehearsal::sim {

// One run of a test's cluster: what the options of the test leave open. As text it is made of the
// flags of `rehearsal run`: "--seed 17 --faults mild --without resets,pauses --strategy pct:d=3
// --benign --decide KEY=VALUE …".
struct ChosenRun {
  Seed seed{1};
  StrategySettings strategy;
  std::optional<FaultLevel> faults;  // without: as the test says
  std::vector<FaultClass> without;   // beside those that the test leaves out
  Otherwise otherwise = Otherwise::drawn;
  std::vector<Override> decisions;

  // `options` with this run's choices.
  [[nodiscard]] ClusterOptions applied_to(ClusterOptions options) const;
};

[[nodiscard]] std::string to_flags(const ChosenRun& run);
// Throws std::invalid_argument with a line that says what to give.
[[nodiscard]] ChosenRun parse_flags(const std::string& flags);

// The same as a file, a flag on each line; lines that begin with # are for people. False if it
// cannot be written.
[[nodiscard]] bool write_run(const std::string& file, const ChosenRun& run,
                             const std::string& comment);
// Throws std::invalid_argument.
[[nodiscard]] ChosenRun read_run(const std::string& file);

}  // namespace rehearsal::sim
