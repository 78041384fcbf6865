#include "real_net/runtime/engine_guard.h"

#include <torch/csrc/autograd/graph_task.h>

namespace rehearsal::real {

bool inside_torch_engine() { return torch::autograd::get_current_graph_task_id() != -1; }

}  // namespace rehearsal::real
