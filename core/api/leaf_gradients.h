#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <unordered_map>
#include <vector>

namespace rehearsal {

// The gradient of one leaf (a tensor that requires gradients and has no history).
struct LeafGradient {
  at::Tensor variable;
  at::Tensor gradient;
};

// The gradients that a context holds for the leaves of its worker. They never touch `.grad`.
class LeafGradients {
 public:
  // Adds a gradient as AccumulateGrad would add it to `.grad`, outside grad mode: the first is
  // taken over or copied into the variable's memory layout, later ones are added in place.
  void accumulate(LeafGradient added);

  // The gradient of a variable; undefined if it has none.
  [[nodiscard]] at::Tensor find(const at::Tensor& variable) const;

  // In the order in which the variables first got a gradient.
  [[nodiscard]] const std::vector<LeafGradient>& all() const { return gradients_; }
  [[nodiscard]] bool empty() const { return gradients_.empty(); }

 private:
  std::vector<LeafGradient> gradients_;
  std::unordered_map<const at::TensorImpl*, size_t> indices_;
};

}  // namespace rehearsal
