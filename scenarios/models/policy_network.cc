#include "scenarios/models/policy_network.h"

#include <limits>

namespace rehearsal::models {
namespace {

constexpr int64_t kStateSize = 4;
constexpr int64_t kHiddenSize = 128;
constexpr int64_t kActionCount = 2;
constexpr double kDropout = 0.6;

}  // namespace

PolicyNetwork::PolicyNetwork()
    : affine1_(register_module("affine1", torch::nn::Linear(kStateSize, kHiddenSize))),
      affine2_(register_module("affine2", torch::nn::Linear(kHiddenSize, kActionCount))) {}

torch::Tensor PolicyNetwork::forward(const torch::Tensor& states, const torch::Tensor& masks) {
  return torch::softmax(affine2_(torch::relu(affine1_(states) * masks)), 1);
}

torch::Tensor PolicyNetwork::draw_mask() const {
  if (!is_training()) return torch::ones({kHiddenSize});
  return torch::empty({kHiddenSize}).bernoulli_(1 - kDropout).div_(1 - kDropout);
}

SampledStep sample_step(PolicyNetwork& policy, const torch::Tensor& state) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor mask = policy.draw_mask();
  const torch::Tensor probabilities = policy.forward(state.unsqueeze(0), mask.unsqueeze(0));
  return {state, mask, torch::multinomial(probabilities, 1).item<int64_t>()};
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
  return torch::log(probabilities.gather(1, chosen)).squeeze(1);
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
  return -(log_probabilities * weights).sum();
}

}  // namespace rehearsal::models
