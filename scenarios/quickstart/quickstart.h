// `quickstart`: the example of the README, compiled. The smallest program with a call, a remote
// object, distributed autograd and an optimizer step.
#pragma once

#include "scenarios/scenario.h"

namespace rehearsal::quickstart {

[[nodiscard]] Scenario scenario();

}  // namespace rehearsal::quickstart
