#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/autograd/gradient_route.h"
#include "core/values/device_copies.h"

namespace rehearsal {

// The receive function: where gradients leave this worker's graph. It is the `grad_fn` of the
// tensors that one message brought; its inputs are their gradients, in message order, which belong
// to the send function of the same message at the peer. Only a GraphWalk passes them on: LibTorch's
// own backward gets an error that says what to call instead.
class RecvRpcBackward final : public torch::autograd::Node {
 public:
  // As soon as its gradients are complete they leave: first of all, as leaves are.
  static constexpr uint64_t kSequenceNr = std::numeric_limits<uint64_t>::max();

  // Makes the function and enters it as the history of `tensors`: those of the message that
  // required gradients at the sender. They are fresh (no history, not requiring gradients),
  // differentiable and distinct, and there is at least one. `message` says for people what brought
  // them: "the result of 'forward', which 'ps' sent to 'trainer'".
  static std::shared_ptr<RecvRpcBackward> make(const GradientRoute& route,
                                               const std::vector<at::Tensor>& tensors,
                                               std::string message = {});

  // The same for those of the tensors of a message that require gradients, which are as they came
  // from the wire, and where `places` says. Null if there is none.
  static std::shared_ptr<RecvRpcBackward> receive(const GradientRoute& route,
                                                  const std::vector<at::Tensor>& tensors,
                                                  std::span<const TensorPlace> places,
                                                  std::string message);

  [[nodiscard]] const GradientRoute& route() const { return route_; }
  [[nodiscard]] const std::string& message() const { return message_; }
  // Where the gradients go: each tensor's place at its sender. Empty: all came from its CPU.
  [[nodiscard]] const std::vector<TensorPlace>& gradient_places() const { return places_; }
  [[nodiscard]] std::string name() const override { return "RecvRpcBackward"; }

 private:
  RecvRpcBackward(const GradientRoute& route, std::string message);
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;

  const GradientRoute route_;
  const std::string message_;
  std::vector<TensorPlace> places_;
};

}  // namespace rehearsal
