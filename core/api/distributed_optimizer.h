#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "core/api/autograd_context.h"
#include "core/api/calls.h"

namespace torch::optim {
class OptimizerOptions;
}  // namespace torch::optim

namespace rehearsal {

class LocalOptimizer;

// One of LibTorch's optimizers over parameters that live at several workers: SGD, Adam, AdamW,
// Adagrad or RMSprop, as the options given say (torch::optim::AdamOptions(1e-3), …; include
// <torch/optim/adam.h> or <torch/torch.h> for them). Each owner keeps its part of the optimizer's
// state. A parameter is known by its identity at the owner, however many references name it.
class DistributedOptimizer {
 public:
  // `worker` is who steps. Never parks: what goes wrong at an owner is told by the first step.
  // Throws std::invalid_argument for options of an optimizer that cannot be distributed, and for no
  // parameters.
  DistributedOptimizer(const Calls& worker, const std::vector<RRef<at::Tensor>>& parameters,
                       const torch::optim::OptimizerOptions& options);
  ~DistributedOptimizer();
  DistributedOptimizer(DistributedOptimizer&&) noexcept;
  DistributedOptimizer& operator=(DistributedOptimizer&&) noexcept;

  // One step with the gradients of the context; a parameter without one is untouched. One call for
  // each owner, side by side; each is applied once, also if sent again. Parks. Throws RpcError
  // with every owner's outcome unless all have stepped.
  void step(const AutogradContext& context) const;

  // Scales the context's gradients of all parameters together so that their 2-norm is at most
  // `max_norm`, with the bits that torch::nn::utils::clip_grad_norm_ gives for them in the
  // order given. The norm before. Parks. Throws RpcError.
  double clip_grad_norm(const AutogradContext& context, double max_norm) const;

 private:
  struct Share;
  template <class T>
  std::vector<T> gather(const std::string& what, std::vector<Future<T>> futures) const;

  std::vector<Share> shares_;  // by owner, in rank order
  size_t parameter_count_ = 0;
};

// The functions that every program has: the owners' parts.
void register_optimizer(FunctionRegistry& registry);

}  // namespace rehearsal
