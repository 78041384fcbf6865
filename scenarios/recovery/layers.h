#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/api/remote_module.h"

namespace rehearsal::recovery {

// A layer whose parameters follow from its seed.
struct LayerImpl : torch::nn::Module {
  LayerImpl(int64_t in, int64_t out, int64_t seed);
  at::Tensor forward(const at::Tensor& input);
  std::vector<at::Tensor> values() const;

  at::Tensor weight, bias;
};
TORCH_MODULE(Layer);

void register_layers(FunctionRegistry& registry);

// The sizes and seeds of the two layers, the same wherever they live.
constexpr int64_t kIn = 6, kHidden = 8, kOut = 2;
constexpr int64_t kFirstSeed = 1, kSecondSeed = 2;

// The batch of a step, and how far the output for it is from its targets.
[[nodiscard]] at::Tensor batch_of(uint64_t seed, int64_t position);
[[nodiscard]] at::Tensor loss_of(const at::Tensor& output, const at::Tensor& batch);

// The parameters that one process has after so many steps. Step i is made by the optimizer of
// trainer i modulo `trainers`.
[[nodiscard]] std::vector<at::Tensor> trained_alone(uint64_t seed, int64_t steps, int64_t trainers);

}  // namespace rehearsal::recovery
