#pragma once

#include "command_line/scenario.h"

namespace rehearsal {

// One value, made by worker 0 at worker 1 and passed on to the others: the smallest story in which
// every message of a remote reference's life takes part. For `rehearsal explore`.
[[nodiscard]] Scenario rref_fork_scenario();

}  // namespace rehearsal
