// Programs whose user code ends a run, or never comes to its end: `locked` holds a std::mutex
// across a call; `broken` does in a served function what its option `how` says; `retrying` tries
// again whatever fails.
#pragma once

#include <vector>

#include "command_line/scenario.h"

namespace rehearsal::locked {

std::vector<Scenario> scenarios();

}  // namespace rehearsal::locked
