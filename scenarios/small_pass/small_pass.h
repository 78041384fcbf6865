#pragma once

#include "command_line/scenario.h"

namespace rehearsal {

// One backward pass over three workers, of which the roots need a part: the smallest story in which
// every message of a pass takes part. For `rehearsal explore`.
[[nodiscard]] Scenario small_pass_scenario();

}  // namespace rehearsal
