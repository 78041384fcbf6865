#include "scenarios/models/policy_network.h"

#include <torch/utils.h>

#include <limits>

#include "core/base/hash.h"
#include "scenarios/models/residual_net.h"
#include "scenarios/models/unit_interval.h"

namespace rehearsal::models {
namespace {

constexpr int64_t kStateSize = 4;
constexpr int64_t kHiddenSize = 128;
constexpr int64_t kActionCount = 2;
constexpr double kDropout = 0.6;

// In [0, 1).
double uniform(uint64_t seed, int64_t number) {
  return unit_interval(mix(seed, static_cast<uint64_t>(number)));
}

torch::Tensor mask_of(uint64_t seed) {
  std::vector<float> mask;
  for (int64_t unit = 0; unit < kHiddenSize; ++unit)
    mask.push_back(uniform(seed, unit) < kDropout ? 0.0F : static_cast<float>(1 / (1 - kDropout)));
  return torch::tensor(mask);
}

}  // namespace

PolicyNetwork::PolicyNetwork()
    : affine1_(register_module("affine1", torch::nn::Linear(kStateSize, kHiddenSize))),
      affine2_(register_module("affine2", torch::nn::Linear(kHiddenSize, kActionCount))) {}

torch::Tensor PolicyNetwork::forward(const torch::Tensor& states, const torch::Tensor& masks) {
  const torch::Device device = affine1_->weight.device();
  const torch::Tensor hidden = torch::relu(affine1_(states.to(device)) * masks.to(device));
  return torch::softmax(affine2_(hidden), 1);
}

torch::Tensor PolicyNetwork::draw_mask() const {
  if (!is_training()) return torch::ones({kHiddenSize});
  return torch::empty({kHiddenSize}).bernoulli_(1 - kDropout).div_(1 - kDropout);
}

void PolicyNetwork::draw_parameters(const at::Generator& generator) {
  const torch::NoGradGuard no_grad;
  for (const auto& [layer, inputs] : {std::pair(affine1_, kStateSize), {affine2_, kHiddenSize}})
    for (torch::Tensor& parameter : layer->parameters())
      parameter.copy_(draw_weight(parameter.sizes(), inputs, generator));
}

torch::Tensor tensor_of(const CartPole::Observation& observation) {
  return torch::tensor(at::ArrayRef<float>(observation.data(), observation.size()));
}

SampledStep sample_step(PolicyNetwork& policy, const torch::Tensor& state) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor mask = policy.draw_mask();
  const torch::Tensor probabilities = policy.forward(state.unsqueeze(0), mask.unsqueeze(0));
  return {state, mask, torch::multinomial(probabilities.cpu(), 1).item<int64_t>()};
}

std::vector<SampledStep> sample_steps(PolicyNetwork& policy,
                                      const std::vector<torch::Tensor>& states,
                                      const std::vector<uint64_t>& seeds) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> masks;
  for (const uint64_t seed : seeds) masks.push_back(mask_of(seed));
  const torch::Tensor probabilities =
      policy.forward(torch::stack(states), torch::stack(masks)).cpu();
  std::vector<SampledStep> steps;
  for (size_t i = 0; i < states.size(); ++i) {
    const auto left = probabilities[static_cast<int64_t>(i)][0].item<double>();
    steps.push_back({states[i], masks[i], uniform(seeds[i], kHiddenSize) < left ? 0 : 1});
  }
  return steps;
}

torch::Tensor log_probabilities(PolicyNetwork& policy, const std::vector<SampledStep>& steps) {
  std::vector<torch::Tensor> states;
  std::vector<torch::Tensor> masks;
  std::vector<int64_t> actions;
  for (const SampledStep& step : steps) {
    states.push_back(step.state);
    masks.push_back(step.mask);
    actions.push_back(step.action);
  }
  const torch::Tensor probabilities = policy.forward(torch::stack(states), torch::stack(masks));
  const torch::Tensor chosen = torch::tensor(actions, torch::kLong).unsqueeze(1);
  return torch::log(probabilities.gather(1, chosen.to(probabilities.device()))).squeeze(1);
}

std::vector<double> discounted_returns(const std::vector<double>& rewards) {
  std::vector<double> returns(rewards.size());
  double next = 0;
  for (size_t i = rewards.size(); i-- > 0;) {
    next = rewards[i] + kRewardDiscount * next;
    returns[i] = next;
  }
  return returns;
}

torch::Tensor policy_loss(const torch::Tensor& log_probabilities,
                          const std::vector<double>& returns) {
  constexpr double kEpsilon = std::numeric_limits<float>::epsilon();
  torch::Tensor weights = torch::tensor(returns, torch::kFloat);
  if (returns.size() > 1) {
    weights = (weights - weights.mean()) / (weights.std() + kEpsilon);
  }
  return -(log_probabilities * weights.to(log_probabilities.device())).sum();
}

}  // namespace rehearsal::models
