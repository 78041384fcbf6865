#pragma once

#include <string>

#include "command_line/flags.h"
#include "command_line/run_settings.h"

namespace rehearsal::command_line {

// The flag of a real run that says how long its threads look at the network before they sleep.
// Throws WrongUse if it, or the variable in its place, cannot be followed, or if the run is
// simulated.
[[nodiscard]] std::string parse_spin(const Flags& flags, Net net);

}  // namespace rehearsal::command_line
