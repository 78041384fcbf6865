// A part of a residual net: some of its blocks, and what stands before the first or behind the
// last.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/function_registry.h"

namespace rehearsal::pipeline {

struct ShardSizes {
  int64_t channels = 1;
  int64_t blocks = 1;   // of two convolutions each, with a way around them
  int64_t classes = 1;  // of the last shard
  bool is_first = false;
  bool is_last = false;
  int64_t pass_ms = 0;  // how many milliseconds it rests in each of its passes

  friend void describe(ShardSizes& sizes, auto&& fields) {
    fields(sizes.channels, sizes.blocks, sizes.classes, sizes.is_first, sizes.is_last,
           sizes.pass_ms);
  }
};

// float {rows, 3, side, side}, or what the shard before gives, to what the next one takes; of the
// last one the scores of each class, float {rows, classes}. Nothing normalises over a batch.
class Shard : public torch::nn::Module {
 public:
  // The same for the same seed.
  Shard(const ShardSizes& sizes, int64_t seed);

  at::Tensor compute(const at::Tensor& input) const;

  // The same as a stage of a pipeline, which may rest: once forward, and once at the gradient of
  // its output and of its first parameter.
  at::Tensor forward(CallContext& call, const at::Tensor& input);

  // The present parameters, outside of any graph.
  std::vector<at::Tensor> values() const;

 private:
  // `all`: the parameters.
  [[nodiscard]] at::Tensor compute(const at::Tensor& input,
                                   const std::vector<at::Tensor>& all) const;

  const ShardSizes sizes_;
};

void register_shard(FunctionRegistry& registry);

}  // namespace rehearsal::pipeline
