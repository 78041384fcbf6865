// `batch_parameter_server`: PyTorch's example of a parameter server that updates in batches. It
// answers no trainer before the gradients of all have come, and then all with the new model.
#pragma once

#include "command_line/scenario.h"

namespace rehearsal::batch_parameter_server {

[[nodiscard]] Scenario scenario();

}  // namespace rehearsal::batch_parameter_server
