// The functions that the workers of `traps` serve: weights, and all means by which they can call.
#pragma once

#include <torch/nn/module.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "core/api/autograd_context.h"
#include "core/api/batcher.h"
#include "core/api/call_context.h"
#include "core/api/function_registry.h"
#include "core/api/remote_module.h"

namespace rehearsal::traps {

// Twelve different numbers; the same in every process.
[[nodiscard]] torch::Tensor numbers(double first);

torch::Tensor twice(const torch::Tensor& x);

// Row by row.
void twice_by_rows(CallContext& call, StreamWriter<torch::Tensor>& rows, const torch::Tensor& x);

// Throws what it was given.
struct TooLarge : std::runtime_error {
  using std::runtime_error::runtime_error;
  torch::Tensor value;
  friend void describe(TooLarge& thrown, auto&& fields) { fields(thrown.value); }
};
torch::Tensor refuse(const torch::Tensor& x);

// A weight. The functions of its method `forward` call by references, never through their
// CallContext.
class Scaler {
 public:
  explicit Scaler(double first) : weight_(numbers(first).requires_grad_()) {}

  torch::Tensor forward(const torch::Tensor& x) { return torch::tanh(x * weight_); }

  // Here, then in the next one: a call inside a call.
  torch::Tensor through(const torch::Tensor& x, const RRef<Scaler>& next);
  // The same in a continuation, which answers the call when no function runs any more.
  Future<torch::Tensor> later(CallContext& call, const torch::Tensor& x, const RRef<Scaler>& next);
  // The same by a reference to the next one's result.
  torch::Tensor by_reference(const torch::Tensor& x, const RRef<Scaler>& next);
  // Of a value that lives elsewhere.
  torch::Tensor fetched(const RRef<torch::Tensor>& x) { return forward(x.to_here()); }
  Future<torch::Tensor> fetched_later(const RRef<torch::Tensor>& x);
  void by_rows(CallContext& call, StreamWriter<torch::Tensor>& rows, const torch::Tensor& x);

  // Keeps a tensor for a later call.
  void keep(const torch::Tensor& x) { kept_ = x; }
  torch::Tensor of_kept() { return forward(kept_); }

  // In the context of the call; undefined if there is none.
  torch::Tensor gradient(CallContext& call) { return get_gradients(call).find(weight_); }
  std::vector<RRef<torch::Tensor>> parameters(CallContext& call) { return {call.rref(weight_)}; }

 private:
  torch::Tensor weight_;
  torch::Tensor kept_;
};

// Hands what it is given to a Scaler in batches.
class Hub {
 public:
  Hub(CallContext& call, const RRef<Scaler>& next);
  Future<torch::Tensor> forward(const torch::Tensor& x) { return batcher_.add(x); }

 private:
  Batcher<torch::Tensor, torch::Tensor> batcher_;
};

// Keeps what it is made of.
class Holder {
 public:
  explicit Holder(const torch::Tensor& x) : x_(x) {}
  torch::Tensor doubled() { return x_ * 2; }

 private:
  torch::Tensor x_;
};

// The same as a Scaler, as a module.
class Net : public torch::nn::Module {
 public:
  explicit Net(double first) : weight_(register_parameter("weight", numbers(first))) {}
  torch::Tensor forward(const torch::Tensor& x) { return torch::tanh(x * weight_); }
  torch::Tensor squared(const torch::Tensor& x) { return forward(x).pow(2); }
  torch::Tensor gradient(CallContext& call) { return get_gradients(call).find(weight_); }

 private:
  torch::Tensor weight_;
};

[[nodiscard]] FunctionRegistry functions();

}  // namespace rehearsal::traps
