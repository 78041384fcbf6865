#pragma once

#include "command_line/scenario.h"

namespace rehearsal::random_training {

// A training drawn from the seed: remote layers of several kinds, an optimizer, bounds, scaled
// losses, schedulers, replicas and checkpoints, every bit of which is that of one process.
[[nodiscard]] Scenario scenario();

}  // namespace rehearsal::random_training
