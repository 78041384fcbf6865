#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/api/batcher.h"
#include "scenarios/storm/functions.h"

// The features that a storm uses beside calls, references and streams: batches, modules, exceptions
// of its own, TorchScript.
namespace rehearsal::storm {

// Doubles what it is given, three at a time.
class Doubler {
 public:
  explicit Doubler(CallContext& context);
  Future<int64_t> twice(int64_t number) { return batcher_.add(number); }

 private:
  Batcher<int64_t, int64_t> batcher_;
};

// Brings a reference with it.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
  int64_t number = 0;
  RRef<Counter> counter;  // of this number
  friend void describe(Refusal& refusal, auto&& fields) { fields(refusal.number, refusal.counter); }
};

// Throws a Refusal of the journey's value, at the journey's end.
int64_t refuse(CallContext& context, const Journey& journey);

// The same behind the journey's value of items.
void refuse_at_last(CallContext& context, StreamWriter<int64_t>& out, const Journey& journey);

// x · weight.
class Weight : public torch::nn::Module {
 public:
  explicit Weight(double weight);
  torch::Tensor forward(const torch::Tensor& x) { return x * weight_; }

 private:
  torch::Tensor weight_;
};

void register_features(FunctionRegistry& registry);

// Those that pass on values of many types (value_operations.cc).
void register_values(FunctionRegistry& registry);

}  // namespace rehearsal::storm
