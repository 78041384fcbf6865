// `ddp_rpc`: PyTorch's example of data and model parallelism together. Trainers have replicas of a
// dense layer, whose gradients they average in a process group; behind it all of them share one
// table of embeddings, which lives on a parameter server and learns from the passes of each.
#pragma once

#include "command_line/scenario.h"

namespace rehearsal::ddp_rpc {

[[nodiscard]] Scenario scenario();

}  // namespace rehearsal::ddp_rpc
