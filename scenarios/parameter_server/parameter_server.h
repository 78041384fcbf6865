// `parameter_server`: PyTorch's example of that name. One server holds a classifier of digits,
// trainers run it there, and step it there, without waiting for each other.
#pragma once

#include "command_line/scenario.h"

namespace rehearsal::parameter_server {

[[nodiscard]] Scenario scenario();

}  // namespace rehearsal::parameter_server
