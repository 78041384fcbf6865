// `quickstart`: the example of the README, compiled. The smallest program with a call, a remote
// object, distributed autograd and an optimizer step.
#pragma once

#include "command_line/scenario.h"

namespace rehearsal::quickstart {

[[nodiscard]] Scenario scenario();

}  // namespace rehearsal::quickstart
