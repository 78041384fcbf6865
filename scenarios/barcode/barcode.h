#pragma once

#include "command_line/scenario.h"

namespace rehearsal::barcode {

// Backward passes over many chains of calls side by side, each through several workers; every
// worker's gradient tells by its digits which chains have reached it, and how often.
[[nodiscard]] Scenario scenario();

}  // namespace rehearsal::barcode
