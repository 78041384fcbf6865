#pragma once

#include "command_line/scenario.h"
#include "core/api/worker.h"
#include "scenarios/random_training/plan.h"

namespace rehearsal::random_training {

// A trainer's main: trains its replica of the head; the first one trains the layers, too. Parks.
// Throws RpcError, and WrongResult for what is not as in one process.
void train(const Worker& worker, const Plan& plan, Reporter& reporter);

}  // namespace rehearsal::random_training
