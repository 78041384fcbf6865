#pragma once

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <cstring>
#include <utility>
#include <vector>

#include "core/autograd/graph_walk.h"

// The helpers that the tests of walks share.
namespace rehearsal::testing {

// Keeps what a walk hands out and which nodes it entered.
class RecordingHost final : public WalkHost {
 public:
  struct Received {
    RecvRpcBackward* function;
    torch::autograd::variable_list gradients;
    std::vector<uint32_t> unreached;
  };

  void on_received_gradients(RecvRpcBackward& function, torch::autograd::variable_list gradients,
                             std::vector<uint32_t> unreached) override {
    received.push_back({&function, std::move(gradients), std::move(unreached)});
  }
  void enter(torch::autograd::Node& node) override { entered.push_back(&node); }
  void leave(torch::autograd::Node& node) noexcept override { left.push_back(&node); }
  void on_gate(uint32_t number, PassGate& /*gate*/, GatePart part) override {
    gates.emplace_back(number, part);
  }

  std::vector<Received> received;
  std::vector<torch::autograd::Node*> entered;
  std::vector<torch::autograd::Node*> left;
  std::vector<std::pair<uint32_t, GatePart>> gates;
};

inline WalkRoot root_of(const at::Tensor& tensor, at::Tensor gradient = {}) {
  if (!gradient.defined()) gradient = torch::ones_like(tensor);
  return {torch::autograd::impl::gradient_edge(tensor), std::move(gradient)};
}

inline GradientRoute route(uint64_t ordinal, uint64_t path = 1) {
  GradientRoute route;
  route.context.path = {9, 9};
  route.message.path = {path, path};
  route.message.ordinal = ordinal;
  route.peer.value = 1;
  return route;
}

inline CausalId maker(uint64_t ordinal) { return {{7}, {5, 5}, ordinal}; }

inline at::Tensor leaf(std::initializer_list<float> values) {
  return torch::tensor(at::ArrayRef<float>(values)).requires_grad_();
}

// Runs one whole walk and gives the leaves' gradients, added to nothing.
inline LeafGradients walk_all(WalkScope scope) {
  RecordingHost host;
  GraphWalk walk(std::move(scope), host);
  walk.run();
  EXPECT_TRUE(walk.finished());
  LeafGradients gradients;
  for (auto& [place, gradient] : walk.take_gradients()) gradients.accumulate(std::move(gradient));
  return gradients;
}

// The same type, layout, shape and bits (so that −0 is not 0, and a NaN is itself).
inline bool same_bits(const at::Tensor& first, const at::Tensor& second) {
  if (first.defined() != second.defined()) return false;
  if (!first.defined()) return true;
  if (first.layout() != second.layout() || first.dtype() != second.dtype()) return false;
  if (first.sizes() != second.sizes()) return false;
  if (first.is_sparse())
    return same_bits(first._indices(), second._indices()) &&
           same_bits(first._values(), second._values());
  const at::Tensor a = first.contiguous();
  const at::Tensor b = second.contiguous();
  return std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

}  // namespace rehearsal::testing
