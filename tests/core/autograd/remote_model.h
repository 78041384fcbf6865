#pragma once

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <cstring>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/program.h"
#include "core/api/worker.h"

// A model in parts that live at several workers, for tests of passes and optimizers.
namespace rehearsal::testing {

inline bool equal_bits(const at::Tensor& first, const at::Tensor& second) {
  if (!first.defined() || !second.defined()) return first.defined() == second.defined();
  if (first.dtype() != second.dtype() || first.sizes() != second.sizes()) return false;
  const at::Tensor a = first.detach().contiguous();
  const at::Tensor b = second.detach().contiguous();
  return std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

// Values that depend on the seed only.
inline at::Tensor numbers(at::IntArrayRef sizes, int64_t seed) {
  const int64_t count = c10::multiply_integers(sizes);
  const at::Tensor whole = at::arange(seed, seed + count, at::kFloat).reshape(sizes);
  return at::sin(whole * 12.9898F);
}

// One layer: tanh(x w + b).
class Layer {
 public:
  Layer(int64_t width, int64_t seed)
      : weight_(numbers({width, width}, seed).requires_grad_()),
        bias_(numbers({width}, seed + 1000).requires_grad_()) {}

  at::Tensor forward(const at::Tensor& input) {
    return at::tanh(at::matmul(input, weight_) + bias_);
  }

  // Sends its result on to another layer first.
  at::Tensor forward_through(CallContext& call, const at::Tensor& input, const RRef<Layer>& next) {
    return call.rpc_sync(next, &Layer::forward, forward(input));
  }
  // Goes to `next`, comes back and is used again here.
  at::Tensor forward_around(CallContext& call, const at::Tensor& input, const RRef<Layer>& next) {
    return forward(call.rpc_sync(next, &Layer::forward, forward(input)));
  }
  at::Tensor scalar(const at::Tensor& input) { return forward(input).sum(); }
  // Fetches its input.
  at::Tensor forward_fetched(const RRef<at::Tensor>& input) { return forward(input.to_here()); }
  // The squares of the weight's gradient, added up.
  at::Tensor weight_penalty(CallContext& call) {
    return get_gradients(call).find(weight_).pow(2).sum();
  }

  std::vector<RRef<at::Tensor>> parameters(CallContext& call) {
    return {call.rref(weight_), call.rref(bias_)};
  }
  std::vector<at::Tensor> values() { return {weight_.detach(), bias_.detach()}; }
  std::vector<at::Tensor> gradients(CallContext& call) {
    const LeafGradients gradients = get_gradients(call);
    return {gradients.find(weight_), gradients.find(bias_)};
  }
  void add_throwing_hook() {
    weight_.register_hook([](const at::Tensor& gradient) -> at::Tensor {
      if (gradient.defined()) throw std::runtime_error("the hook of the weight failed");
      return gradient;
    });
  }
  void add_doubling_hook() {
    weight_.register_hook([](const at::Tensor& gradient) { return gradient * 2; });
  }

  at::Tensor weight_;
  at::Tensor bias_;
};

inline FunctionRegistry layer_functions() {
  FunctionRegistry registry;
  registry.type<Layer>("Layer")
      .constructor<int64_t, int64_t>()
      .method("forward", &Layer::forward)
      .method("forward_through", &Layer::forward_through)
      .method("forward_around", &Layer::forward_around)
      .method("scalar", &Layer::scalar)
      .method("forward_fetched", &Layer::forward_fetched)
      .method("weight_penalty", &Layer::weight_penalty)
      .method("parameters", &Layer::parameters)
      .method("values", &Layer::values)
      .method("gradients", &Layer::gradients)
      .method("add_throwing_hook", &Layer::add_throwing_hook)
      .method("add_doubling_hook", &Layer::add_doubling_hook);
  return registry;
}

// The gradients of a local model, as autograd itself computes them.
inline std::vector<at::Tensor> local_gradients(const at::Tensor& root,
                                               const std::vector<at::Tensor>& leaves) {
  return torch::autograd::grad({root}, leaves, {}, /*retain_graph=*/true, false,
                               /*allow_unused=*/true);
}

}  // namespace rehearsal::testing
