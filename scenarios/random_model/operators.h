#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "scenarios/random_model/model.h"

namespace rehearsal::random_model {

using Outputs = std::vector<at::Tensor>;

// The results of one node; the same bits wherever it runs. `inputs` in the order of the node's, on
// one device with the node's constants.
// With `owned`, the first input is nobody else's and may be changed in place.
[[nodiscard]] Outputs evaluate(const Model& model, const Node& node, const Outputs& inputs,
                               bool owned);

// A root of a pass: how far the gradients of some leaves are from zero, so to speak. Undefined ones
// and those without history count for nothing; undefined if all do.
[[nodiscard]] at::Tensor penalty_of(const Outputs& gradients);

// Three tensors equal to `x`, whose gradients are added in this order: `last` at the end.
[[nodiscard]] Outputs fork(const at::Tensor& x, int64_t last);

}  // namespace rehearsal::random_model
