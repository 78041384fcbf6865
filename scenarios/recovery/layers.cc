#include "scenarios/recovery/layers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/functional/linear.h>
#include <torch/optim/adam.h>

#include "core/base/hash.h"

namespace rehearsal::recovery {
namespace {

at::Tensor drawn(at::IntArrayRef sizes, uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed));
}

}  // namespace

LayerImpl::LayerImpl(int64_t in, int64_t out, int64_t seed)
    : weight(register_parameter("weight", drawn({out, in}, static_cast<uint64_t>(seed)) * 0.3)),
      bias(register_parameter("bias", torch::zeros({out}))) {}

at::Tensor LayerImpl::forward(const at::Tensor& input) {
  return torch::tanh(torch::nn::functional::linear(input, weight, bias));
}

std::vector<at::Tensor> LayerImpl::values() const {
  return {weight.detach().clone(), bias.detach().clone()};
}

void register_layers(FunctionRegistry& registry) {
  register_module<Layer, int64_t, int64_t, int64_t>(registry, "Layer")
      .method("values", &LayerImpl::values);
}

at::Tensor batch_of(uint64_t seed, int64_t position) {
  return drawn({4, kIn}, mix(seed, static_cast<uint64_t>(position)));
}

at::Tensor loss_of(const at::Tensor& output, const at::Tensor& batch) {
  const at::Tensor target = torch::sin(batch.narrow(1, 0, kOut) * 2).to(output.device());
  return (output - target).pow(2).mean();
}

std::vector<at::Tensor> trained_alone(uint64_t seed, int64_t steps, int64_t trainers) {
  Layer first(kIn, kHidden, kFirstSeed);
  Layer second(kHidden, kOut, kSecondSeed);
  std::vector<at::Tensor> parameters = first->parameters();
  for (const at::Tensor& parameter : second->parameters()) parameters.push_back(parameter);
  std::vector<torch::optim::Adam> optimizers;
  for (int64_t i = 0; i < trainers; ++i)
    optimizers.emplace_back(parameters, torch::optim::AdamOptions(0.02));
  for (int64_t step = 0; step < steps; ++step) {
    torch::optim::Adam& optimizer = optimizers[static_cast<size_t>(step % trainers)];
    optimizer.zero_grad();
    const at::Tensor batch = batch_of(seed, step);
    loss_of(second->forward(first->forward(batch)), batch).backward();
    optimizer.step();
  }
  std::vector<at::Tensor> values = first->values();
  for (const at::Tensor& value : second->values()) values.push_back(value);
  return values;
}

}  // namespace rehearsal::recovery
