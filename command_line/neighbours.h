// Runs that hold and are nearly the failing one: what they do otherwise is what decides.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "command_line/commands.h"
#include "sim/explain/what_decides.h"

namespace rehearsal::command_line {

struct Neighbour {
  RunSettings holding;
  RunSettings failing;   // differs in one decision from the one that holds
  sim::Decider decider;  // this decision
};

// Carries a run out.
using Attempt = std::function<RunOutcome(const RunSettings&)>;

// For each decision of a failing run, whose others are benign: the run with the largest value of it
// that holds, as far as halving finds it. Of a run that fails without any decision: one that holds
// in another order of events, brought as near as shrinking its decisions brings it. Of a schedule
// of `explore`: with one of its faults or deviations less, or with one more. Looks for
// `seconds` at most.
[[nodiscard]] std::vector<Neighbour> neighbours_that_hold(const Tool& tool,
                                                          const RunSettings& settings,
                                                          const Attempt& attempt, double seconds);

}  // namespace rehearsal::command_line
