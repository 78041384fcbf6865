#pragma once

#include "command_line/scenario.h"

namespace rehearsal::shared_state {

// Producers put items at a store that has room for few, and trainers take them from there in
// batches: each side waits for the other in primitives of Boost.Fiber, which the functions of one
// worker share. `plant` makes one of three mistakes that such code is known for.
[[nodiscard]] Scenario scenario();

}  // namespace rehearsal::shared_state
