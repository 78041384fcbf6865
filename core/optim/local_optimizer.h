#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/leaf_gradients.h"
#include "core/optim/optimizer_settings.h"

namespace rehearsal {

class FunctionRegistry;

// A DistributedOptimizer's part at one owner: one of LibTorch's optimizers over the parameters that
// live there. Steps use the gradients of the autograd context that the call is recorded in. It
// works on aliases of the parameters, so that nobody's `.grad` is touched. All optimizers of a
// worker step one at a time.
class LocalOptimizer {
 public:
  // A parameter that is given twice counts once.
  LocalOptimizer(const OptimizerSettings& settings,
                 const std::vector<RRef<at::Tensor>>& parameters);
  ~LocalOptimizer();

  // Changes the parameters that have a gradient. Parks.
  void step(CallContext& call);

  // The 2-norm of each parameter's gradient, by position; undefined for one without a gradient and
  // for one that was given before. Parks.
  [[nodiscard]] std::vector<at::Tensor> gradient_norms(CallContext& call);

  // Multiplies the gradients in the context. Parks.
  void scale_gradients(CallContext& call, const at::Tensor& factor);

  // Makes it callable in every program.
  static void register_in(FunctionRegistry& registry);

 private:
  struct Parameter {
    at::Tensor tensor;
    at::Tensor alias;  // the same storage, with a gradient of its own
  };

  std::vector<Parameter> parameters_;  // each once
  std::vector<size_t> places_;         // of each given parameter that came first, its position
  size_t given_ = 0;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

}  // namespace rehearsal
