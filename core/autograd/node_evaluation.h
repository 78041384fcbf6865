#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

namespace rehearsal {

// Evaluates one node as LibTorch's engine does: tensor hooks, retain_grad hooks, pre hooks, the
// node itself, the check of its outputs against what the next nodes expect, post hooks. Releases
// what the node saved unless the graph is retained. Grad mode is off. Returns one gradient for each
// of next_edges(). Runs user code: may park, throws what it throws.
[[nodiscard]] torch::autograd::variable_list evaluate_node(torch::autograd::Node& node,
                                                           torch::autograd::variable_list inputs,
                                                           bool retain_graph);

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
