#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/api/checkpoint_parts.h"
#include "core/api/worker_access.h"

namespace torch::optim {
class Optimizer;
}  // namespace torch::optim

// The state of a torch::optim::Optimizer in a cut: for each parameter a piece "NAME/PARAMETER", the
// dictionary that the optimizer's own `save` writes of it, empty before its first step. All park,
// and throw RpcError.
namespace rehearsal {

// The parameters as the checkpoint knows them, and as the optimizer does: perhaps an alias.
struct OptimizedTensor {
  at::Tensor named;
  at::Tensor optimized;
};

void keep_optimizer(const WorkerAccess& here, const CheckpointOrder& order, const std::string& name,
                    const torch::optim::Optimizer& optimizer,
                    const std::vector<OptimizedTensor>& tensors);

// The names of the pieces taken; none if the run begins anew. Its options stay as they are.
std::vector<std::string> load_optimizer(const WorkerAccess& here, const CheckpointOrder& order,
                                        const std::string& name, torch::optim::Optimizer& optimizer,
                                        const std::vector<OptimizedTensor>& tensors);

// All parameters of its groups, which are known by themselves.
[[nodiscard]] std::vector<OptimizedTensor> tensors_of(const torch::optim::Optimizer& optimizer);

}  // namespace rehearsal
