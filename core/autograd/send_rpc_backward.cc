#include "core/autograd/send_rpc_backward.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace rehearsal {
namespace {

bool requires_gradient(const at::Tensor& tensor) {
  return tensor.defined() && tensor.requires_grad();
}

}  // namespace

bool need_gradients(const std::vector<at::Tensor>& tensors) {
  return at::GradMode::is_enabled() &&
         std::any_of(tensors.begin(), tensors.end(), requires_gradient);
}

std::shared_ptr<SendRpcBackward> SendRpcBackward::make(const GradientRoute& route,
                                                       const std::vector<at::Tensor>& tensors) {
  torch::autograd::edge_list edges;
  for (const at::Tensor& tensor : tensors)
    if (requires_gradient(tensor)) edges.push_back(torch::autograd::impl::gradient_edge(tensor));
  REHEARSAL_CHECK(!edges.empty(), tensors.size());
  return {new SendRpcBackward(route, std::move(edges)), torch::autograd::deleteNode};
}

SendRpcBackward::SendRpcBackward(const GradientRoute& route, torch::autograd::edge_list&& edges)
    : Node(kSequenceNr, std::move(edges)), route_(route) {}

torch::autograd::variable_list SendRpcBackward::apply(torch::autograd::variable_list&& gradients) {
  return std::move(gradients);
}

}  // namespace rehearsal
