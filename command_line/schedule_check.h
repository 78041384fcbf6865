// The oracle "schedule independence": what a run gives must not depend on what the network did.
#pragma once

#include <functional>

#include "command_line/outcome.h"

namespace rehearsal::command_line {

// Simulates once more, without watching anybody but the results.
using SimulateAgain = std::function<RunOutcome(const RunSettings&)>;

// Of a scenario that says so, a run without crashes gives the same bits as the same seed without
// faults, in the order of instants: if not, the run has failed. Runs of more than 10,000 events are
// let through, as they would take twice as long.
void judge_schedule(const RunSettings& settings, const SimulateAgain& simulate,
                    RunOutcome& outcome);

}  // namespace rehearsal::command_line
