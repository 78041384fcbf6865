#pragma once

#include "command_line/scenario.h"

namespace rehearsal::recovery {

// Two trainers and two owners, any of which may crash at any time, train a model to the bits that
// one process without crashes trains it to.
[[nodiscard]] Scenario scenario();

}  // namespace rehearsal::recovery
