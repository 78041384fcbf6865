#include "core/autograd/recv_rpc_backward.h"

#include <torch/csrc/autograd/functions/utils.h>

#include <utility>

#include "core/base/check.h"
#include "core/base/error.h"

namespace rehearsal {

std::shared_ptr<RecvRpcBackward> RecvRpcBackward::make(const GradientRoute& route,
                                                       const std::vector<at::Tensor>& tensors,
                                                       std::string message) {
  REHEARSAL_CHECK(!tensors.empty(), route.message);
  std::shared_ptr<RecvRpcBackward> function(new RecvRpcBackward(route, std::move(message)),
                                            torch::autograd::deleteNode);
  for (const at::Tensor& tensor : tensors) {
    REHEARSAL_CHECK(tensor.defined(), route.message);
    REHEARSAL_CHECK(!tensor.requires_grad(), route.message);
    torch::autograd::set_history(tensor, function);
  }
  return function;
}

std::shared_ptr<RecvRpcBackward> RecvRpcBackward::receive(const GradientRoute& route,
                                                          const std::vector<at::Tensor>& tensors,
                                                          std::span<const TensorPlace> places,
                                                          std::string message) {
  std::vector<at::Tensor> received;
  std::vector<TensorPlace> back;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& tensor = tensors[i];
    if (!tensor.defined() || !tensor.requires_grad()) continue;
    tensor.set_requires_grad(false);
    received.push_back(tensor);
    if (!places.empty()) back.push_back({.from = places[i].to, .to = places[i].from});
  }
  if (received.empty()) return nullptr;
  std::shared_ptr<RecvRpcBackward> function = make(route, received, std::move(message));
  function->places_ = std::move(back);
  return function;
}

RecvRpcBackward::RecvRpcBackward(const GradientRoute& route, std::string message)
    : Node(kSequenceNr), route_(route), message_(std::move(message)) {}

torch::autograd::variable_list RecvRpcBackward::apply(torch::autograd::variable_list&&) {
  throw RpcError({.kind = ErrorKind::autograd,
                  .text = "Tensor::backward() reached a tensor that came from another worker in "
                          "autograd context " +
                          to_string(route_.context) + "; call the context's backward() instead",
                  .worker = {},
                  .function = name(),
                  .chain = {}});
}

}  // namespace rehearsal
