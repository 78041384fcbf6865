#pragma once

#include "command_line/scenario.h"

namespace rehearsal {

// A random program of calls, nested calls, references, forks, fetches, drops, backward passes and
// optimizers' steps on several workers, drawn from the seed; every result is checked against a
// sequential model.
[[nodiscard]] Scenario storm_scenario();

}  // namespace rehearsal
