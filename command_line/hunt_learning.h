// The lessons that a hunt takes from its runs for later ones: how many choices runs have, for
// strategies that place something among them, and which runs showed something new, for others to go
// on from.
// The settings that each run is given, and which failure is found first, is a function of the
// hunt's arguments and not of the number of processes; see Lagging.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <vector>

#include "command_line/backends.h"
#include "command_line/lagging.h"
#include "sim/hunt/features.h"

namespace rehearsal::command_line {

class HuntLearning {
 public:
  // Whether everything is known that this run is to know.
  [[nodiscard]] bool ready_for(size_t task) const { return results_.ready_for(task); }

  // The same run with what was learnt. `asked` names its strategy, without parameters, or says
  // that it is guided. Runs are improved in their order. REQUIRES: ready_for(task).
  [[nodiscard]] RunSettings improve(size_t task, const RunSettings& asked);

  // Learns from the outcome of a run, as `improve` returned it.
  void learn(size_t task, const RunSettings& settings, const RunOutcome& outcome);

 private:
  // A run that showed something new. A child of it is a run with some choices drawn anew.
  struct Parent {
    RunSettings settings;
    uint64_t draws = 0;
    int children_left = 0;
  };
  struct Result {
    RunSettings settings;
    uint64_t steps = 0;
    uint64_t draws = 0;
    std::vector<uint32_t> features;
  };
  void take(Result result);
  [[nodiscard]] RunSettings child_of_one(const RunSettings& asked);

  Lagging<Result> results_;
  // By scenario: of the runs so far, the most choices that a strategy had.
  std::map<const Scenario*, uint64_t> steps_max_;
  std::map<const Scenario*, std::bitset<sim::Features::kFeatures>> seen_;
  std::map<const Scenario*, std::vector<Parent>> parents_;
};

// How a strategy is counted: its name without what is behind the colon; `guided` if choices were
// drawn anew; empty for the default one.
[[nodiscard]] std::string strategy_label(const RunSettings& settings);

}  // namespace rehearsal::command_line
