#include "core/api/leaf_gradients.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <utility>

namespace rehearsal {

void LeafGradients::accumulate(LeafGradient added) {
  const auto [at, fresh] =
      indices_.emplace(added.variable.unsafeGetTensorImpl(), gradients_.size());
  if (fresh) gradients_.push_back({added.variable, {}});
  at::Tensor& sum = gradients_[at->second].gradient;
  const torch::autograd::AutoGradMode no_grad(false);
  constexpr size_t kOurReferences = 1;
  torch::autograd::AccumulateGrad::accumulateGrad(
      added.variable, sum, added.gradient, kOurReferences,
      [&sum](at::Tensor&& updated) { sum = std::move(updated); });
}

at::Tensor LeafGradients::find(const at::Tensor& variable) const {
  const auto found = indices_.find(variable.unsafeGetTensorImpl());
  return found == indices_.end() ? at::Tensor() : gradients_[found->second].gradient;
}

}  // namespace rehearsal
