// `rnn`: the language model of PyTorch's RPC tutorial on a real text. Embedding table and decoder
// live on a parameter server, the LSTM on the trainer; distributed autograd, gradient clipping and
// DistributedOptimizer train them together.
#pragma once

#include "command_line/scenario.h"

namespace rehearsal::rnn {

[[nodiscard]] Scenario scenario();

}  // namespace rehearsal::rnn
