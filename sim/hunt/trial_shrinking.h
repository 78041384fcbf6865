#pragma once

#include <cstddef>

#include "sim/hunt/trial_runs.h"

namespace rehearsal::sim {

struct SmallTrial {
  ChosenRun run;
  RunFailure failure;  // of this run
  size_t choices = 0;  // that the run as it was found had
  size_t runs = 0;     // that it took
};

// A run that fails, made small as `rehearsal shrink` does it, for `time` at most: milder faults,
// whole classes of them off, then the fewest choices with the least values, all others benign. The
// order of events becomes deviations from the order of instants, so that the strategy is not needed
// where they say the same. Accepts only what fails alike. REQUIRES: the last attempt was this run,
// and failed like this.
[[nodiscard]] SmallTrial shrink_trial(TrialRuns& runs, const ChosenRun& run,
                                      const RunFailure& failure, Duration time);

}  // namespace rehearsal::sim
