// `batch_rl`: the second half of PyTorch's tutorial "Implementing Batch RPC Processing Using
// Asynchronous Executions". One agent answers the observers by futures, all at once, when all have
// asked.
#pragma once

#include "command_line/scenario.h"

namespace rehearsal::batch_rl {

[[nodiscard]] Scenario scenario();

}  // namespace rehearsal::batch_rl
