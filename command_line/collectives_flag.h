#pragma once

#include <string>

#include "command_line/flags.h"
#include "command_line/run_settings.h"

namespace rehearsal::command_line {

// The flag of a real run that says what carries the large tensors of process groups. Throws
// WrongUse if it, or the variable in its place, cannot be followed, or if the run is simulated.
[[nodiscard]] std::string parse_collectives(const Flags& flags, const RunSettings& settings);

}  // namespace rehearsal::command_line
