#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <vector>

namespace rehearsal {

// Evaluates one node as LibTorch's engine does: tensor hooks, retain_grad hooks, pre hooks, the
// node itself, the check of its outputs against what the next nodes expect, post hooks. Releases
// what the node saved unless the graph is retained. Grad mode is off. Returns one gradient for each
// of next_edges(). Runs user code: may park, throws what it throws.
[[nodiscard]] torch::autograd::variable_list evaluate_node(torch::autograd::Node& node,
                                                           torch::autograd::variable_list inputs,
                                                           bool retain_graph);

// True for a node that computes the gradient of each input by itself, and has no hooks that see all
// of them: products of matrices, convolutions, sums and products of numbers.
[[nodiscard]] bool can_evaluate_in_parts(const torch::autograd::Node& node);

// One of the two parts of such a node, whose hooks before it have run: computes those of its
// outputs that `wanted` says, by next_edges(), and leaves the others undefined. `release`: what the
// node saved is not needed any more. Nobody else may be in the node meanwhile. Never parks.
[[nodiscard]] torch::autograd::variable_list evaluate_part(torch::autograd::Node& node,
                                                           torch::autograd::variable_list inputs,
                                                           const std::vector<bool>& wanted,
                                                           bool release);

// The hooks that run before a node, which are all that run before a leaf or a receive function.
[[nodiscard]] torch::autograd::variable_list run_hooks_before(
    torch::autograd::Node& node, torch::autograd::variable_list inputs);

// The post hooks of a node that has no outputs.
void run_hooks_after_sink(torch::autograd::Node& node,
                          const torch::autograd::variable_list& inputs);

// The hook of a leaf's tensor that runs once its gradient has been collected.
void run_post_accumulate_hook(torch::autograd::AccumulateGrad& leaf);

// False if evaluating the node surely runs no code but LibTorch's, so that it cannot park: LibTorch
// then keeps two threads out of one node by itself.
[[nodiscard]] bool may_run_user_code(torch::autograd::Node& node);

}  // namespace rehearsal
