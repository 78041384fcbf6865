// The failure of a run that ended its process.
#pragma once

#include <string>

#include "sim/run_failure.h"

namespace rehearsal::command_line {

// `why`: how the process ended. `errors`: what it has written to its standard error, at least the
// end of it; where other runs of this process, which went on, stand before the last one. Throws
// std::runtime_error with the process's own line if it could not be started (child_process.h).
[[nodiscard]] sim::RunFailure failure_of_process(const std::string& why, const std::string& errors);

}  // namespace rehearsal::command_line
