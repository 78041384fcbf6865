#include "core/autograd/gate_backward.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <utility>

namespace rehearsal {
namespace {

using torch::autograd::variable_list;

bool takes_part(const at::Tensor& tensor) {
  return at::GradMode::is_enabled() && tensor.defined() && tensor.requires_grad();
}

// No view: what is done in place to one of them is not recorded for the other.
at::Tensor with_history(const at::Tensor& tensor,
                        const std::shared_ptr<torch::autograd::Node>& node) {
  at::Tensor same = tensor.detach();
  torch::autograd::set_history(same, node);
  return same;
}

}  // namespace

variable_list GateBackward::apply(variable_list&& gradients) {
  gradients.resize(num_outputs());
  return std::move(gradients);
}

variable_list SectionInputBackward::apply(variable_list&& gradients) {
  return std::move(gradients);
}

at::Tensor GatedSection::enter(const at::Tensor& input) {
  if (!takes_part(input)) return input;
  const std::shared_ptr<torch::autograd::Node> node(
      new SectionInputBackward({torch::autograd::impl::gradient_edge(input)}),
      torch::autograd::deleteNode);
  inputs_.push_back(node);
  return with_history(input, node);
}

at::Tensor GatedSection::leave(const at::Tensor& output) {
  if (!takes_part(output)) {
    for (const GatePart part : {GatePart::flow, GatePart::leaves}) gate_->end(part);
    return output;
  }
  torch::autograd::edge_list edges{torch::autograd::impl::gradient_edge(output)};
  for (const auto& input : inputs_) edges.emplace_back(input, 0);
  return with_history(output,
                      {new GateBackward(gate_, std::move(edges)), torch::autograd::deleteNode});
}

}  // namespace rehearsal
