// A command line whose scenario needs neither simulator nor network: what a run gives is calculated
// from seed and options, so that each exit status and each report can be asked for.
#pragma once

#include <vector>

#include "command_line/backends.h"

namespace rehearsal::command_line::toy {

std::vector<Scenario> scenarios();
Backends backends();

}  // namespace rehearsal::command_line::toy
