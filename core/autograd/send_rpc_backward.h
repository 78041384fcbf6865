#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/autograd/gradient_route.h"

namespace rehearsal {

// True if one of these tensors takes part in gradients and gradients are being recorded (grad mode
// is on): the message that carries them then has a send and a receive function.
[[nodiscard]] bool need_gradients(const std::vector<at::Tensor>& tensors);

// The send function: where the gradients of the tensors that one message took away come back into
// this worker's graph. Nothing in the graph points at it; the context owns it and a pass starts
// there. Its outputs are the tensors of the message that require gradients, in message order; the
// receive function at the peer has the same ones as its inputs.
class SendRpcBackward final : public torch::autograd::Node {
 public:
  // Below leaves, above every ordinary node. Explicit, so that sending moves no thread's numbering.
  static constexpr uint64_t kSequenceNr = std::numeric_limits<uint64_t>::max() - 1;

  // `tensors` are all tensors of the message; at least one requires gradients.
  [[nodiscard]] static std::shared_ptr<SendRpcBackward> make(
      const GradientRoute& route, const std::vector<at::Tensor>& tensors);

  [[nodiscard]] const GradientRoute& route() const { return route_; }
  [[nodiscard]] std::string name() const override { return "SendRpcBackward"; }

 private:
  SendRpcBackward(const GradientRoute& route, torch::autograd::edge_list&& edges);
  // The gradients that arrived are the gradients of the tensors that left.
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;

  const GradientRoute route_;
};

}  // namespace rehearsal
