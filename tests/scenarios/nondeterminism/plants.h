// Scenarios that are deterministic but for one planted mistake each: a client makes five calls of a
// server, and the argument of the fourth, of `planted`, depends on something that no seed decides.
#pragma once

#include <vector>

#include "command_line/scenario.h"

namespace rehearsal::plants {

std::vector<Scenario> scenarios();

}  // namespace rehearsal::plants
