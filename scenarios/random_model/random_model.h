#pragma once

#include "command_line/scenario.h"

namespace rehearsal::random_model {

// A model drawn from the seed, cut at random edges: each node runs at some worker. The gradients of
// one autograd context over all of them are compared with those of one process.
[[nodiscard]] Scenario scenario();

}  // namespace rehearsal::random_model
