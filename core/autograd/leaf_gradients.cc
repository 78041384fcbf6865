#include "core/api/leaf_gradients.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <utility>

namespace rehearsal {

namespace {

// As AccumulateGrad: in place outside grad mode only.
void add_to(at::Tensor& sum, const LeafGradient& added, bool grad_mode) {
  const torch::autograd::AutoGradMode mode(grad_mode);
  constexpr size_t kOurReferences = 1;
  torch::autograd::AccumulateGrad::accumulateGrad(
      added.variable, sum, added.gradient, kOurReferences,
      [&sum](at::Tensor&& updated) { sum = std::move(updated); });
}

}  // namespace

at::Tensor& LeafGradients::slot_of(const at::Tensor& variable) {
  const auto [at, fresh] = indices_.emplace(variable.unsafeGetTensorImpl(), gradients_.size());
  if (fresh) gradients_.push_back({variable, {}});
  return gradients_[at->second].gradient;
}

void LeafGradients::accumulate(LeafGradient added) {
  at::Tensor& sum = slot_of(added.variable);
  const bool recorded = added.gradient.requires_grad() || (sum.defined() && sum.requires_grad());
  add_to(sum, added, recorded);
}

void LeafGradients::add_all(const LeafGradients& others) {
  for (const LeafGradient& added : others.gradients_) {
    at::Tensor& sum = slot_of(added.variable);
    if (sum.defined())
      add_to(sum, added, /*grad_mode=*/true);
    else
      sum = added.gradient;
  }
}

at::Tensor LeafGradients::find(const at::Tensor& variable) const {
  const auto found = indices_.find(variable.unsafeGetTensorImpl());
  return found == indices_.end() ? at::Tensor() : gradients_[found->second].gradient;
}

}  // namespace rehearsal
