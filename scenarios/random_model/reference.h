#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "scenarios/random_model/model.h"
#include "scenarios/random_model/operators.h"

namespace rehearsal::random_model {

// One contribution to the gradient of a leaf: what one use of it brings in one pass.
struct Term {
  size_t user = 0;  // the node that uses the leaf
  size_t pass = 0;
  at::Tensor gradient;  // defined; dense
};

// The model in one process, by LibTorch's own engine. Each use of a leaf is a leaf of its own
// there, so that its gradient is one term.
class Reference {
 public:
  explicit Reference(const Model& model);

  // The results of the node, outside of any graph.
  [[nodiscard]] const Outputs& outputs(size_t node) const { return outputs_[node]; }

  // The fault in the gradients of all leaves after so many passes, undefined ones for leaves
  // without; nothing if they are right. A gradient is right if it is, bit for bit, the sum of at
  // most two terms in the leaf's type. The sum of n > 2 terms depends on their order; each of its
  // n − 1 additions is off by half an ulp at most of what it gives, which is no more than the sum S
  // of the terms' absolute values: so it must be within (n − 1)/2 ulp of S of a compensated sum.
  // That leaves open 1 ulp where three terms have one sign. If the model has a hub, all leaves must
  // be right for one and the same order of its three contributions.
  [[nodiscard]] std::optional<std::string> difference(size_t passes,
                                                      const std::vector<at::Tensor>& leaves) const;

 private:
  // For each leaf, in the order of nodes.
  using Terms = std::vector<std::vector<Term>>;

  void calculate(int64_t last);
  [[nodiscard]] std::optional<std::string> difference(
      const Terms& terms, size_t passes, const std::vector<at::Tensor>& gradients) const;

  const Model& model_;
  std::vector<size_t> leaves_;
  std::vector<Outputs> outputs_;
  std::vector<Terms> orders_;  // one, or one for each order of the hub's contributions
};

}  // namespace rehearsal::random_model
