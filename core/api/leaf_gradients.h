#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <unordered_map>
#include <utility>
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
  // Adds a gradient as AccumulateGrad would add it to `.grad`: the first is taken over or copied
  // into the variable's memory layout, later ones are added in place. One that requires gradients
  // itself (of a pass that is recorded) keeps its history, and nothing is changed in place.
  void accumulate(LeafGradient added);

  // Adds the gradients of another pass, none of them in place: tensors that are held elsewhere stay
  // as they are.
  void add_all(const LeafGradients& others);

  // The gradient of a variable; undefined if it has none.
  [[nodiscard]] at::Tensor find(const at::Tensor& variable) const;

  // In the order in which the variables first got a gradient.
  [[nodiscard]] const std::vector<LeafGradient>& all() const& { return gradients_; }
  [[nodiscard]] std::vector<LeafGradient> all() && { return std::move(gradients_); }
  [[nodiscard]] bool empty() const { return gradients_.empty(); }

 private:
  at::Tensor& slot_of(const at::Tensor& variable);

  std::vector<LeafGradient> gradients_;
  std::unordered_map<const at::TensorImpl*, size_t> indices_;
};

}  // namespace rehearsal
