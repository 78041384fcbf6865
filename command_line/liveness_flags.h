#pragma once

#include "command_line/flags.h"
#include "command_line/run_settings.h"

namespace rehearsal::command_line {

// The flags of a real run that say how soon a worker is given up. Throws WrongUse if they, or the
// variables in their place, cannot be understood, or if the run is simulated.
[[nodiscard]] LivenessTexts parse_liveness(const Flags& flags, Net net);

}  // namespace rehearsal::command_line
