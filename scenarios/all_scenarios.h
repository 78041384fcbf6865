// All scenarios of this repository, in the order in which `rehearsal list` shows them.
#pragma once

#include <vector>

#include "command_line/scenario.h"

namespace rehearsal {

[[nodiscard]] std::vector<Scenario> all_scenarios();

}  // namespace rehearsal
