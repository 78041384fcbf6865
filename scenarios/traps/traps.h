// `traps`: all ways to lose a gradient. Each either gives the gradient of one process, bit by bit,
// or is an error that names the call.
#pragma once

#include "command_line/scenario.h"

namespace rehearsal::traps {

[[nodiscard]] Scenario scenario();

}  // namespace rehearsal::traps
