#pragma once

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "core/base/hash.h"

namespace rehearsal::testing {

// A random autograd graph over 4 by 3 tensors, drawn from a seed: views, changes in place, tensors
// used twice, unused outputs, sparse embeddings, undefined gradients, checkpoints (which call
// LibTorch's engine inside a node), hooks of every kind, several roots. Every graph of a seed has
// the same bits.
class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed);

  std::vector<at::Tensor> leaves;          // all require gradients
  std::vector<at::Tensor> roots;           // one to three, perhaps inside each other's graphs
  std::vector<at::Tensor> root_gradients;  // one for each root
  std::vector<at::Tensor> retained;        // inner tensors with retain_grad
  std::vector<uint64_t> hook_calls;        // which hooks of inner tensors ran, in order
  uint64_t leaf_hook_calls = 0;

 private:
  uint64_t draw(uint64_t count);
  bool chance(uint64_t percent) { return draw(100) < percent; }
  at::Tensor any() { return pool_[draw(pool_.size())]; }
  at::Tensor next_tensor();
  at::Tensor arithmetic();
  at::Tensor reshaped();
  at::Tensor changed_in_place();
  at::Tensor through_own_function();
  at::Tensor looked_up();
  void hook(const at::Tensor& tensor);
  void hook_leaves();
  void choose_roots();

  uint64_t state_;
  std::vector<at::Tensor> pool_;
  at::Tensor square_;
  at::Tensor table_;
};

}  // namespace rehearsal::testing
