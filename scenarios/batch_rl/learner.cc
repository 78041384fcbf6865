#include "scenarios/batch_rl/learner.h"

#include <ATen/CPUGeneratorImpl.h>

#include <stdexcept>
#include <string>

#include "core/base/hash.h"

namespace rehearsal::batch_rl {
namespace {

constexpr double kLearningRate = 1e-2;
constexpr double kRunningShare = 0.5;

std::shared_ptr<models::PolicyNetwork> first_policy(uint64_t seed, const c10::Device& device) {
  auto policy = std::make_shared<models::PolicyNetwork>();
  policy->draw_parameters(at::make_generator<at::CPUGeneratorImpl>(seed));
  policy->to(device);
  return policy;
}

}  // namespace

Learner::Learner(const Settings& settings, const c10::Device& device)
    : seed_(settings.seed),
      asked_(static_cast<size_t>(settings.observers)),
      policy_(first_policy(mix(settings.seed, 0), device)),
      optimizer_(policy_->parameters(), torch::optim::AdamOptions(kLearningRate)) {}

std::vector<int64_t> Learner::act(const std::vector<Request>& requests) {
  std::vector<torch::Tensor> states;
  std::vector<uint64_t> seeds;
  for (const Request& request : requests) {
    Asked& asked = asked_.at(static_cast<size_t>(request.observer));
    states.push_back(request.state);
    seeds.push_back(mix(mix(seed_, static_cast<uint64_t>(1 + request.observer)), asked.count++));
  }
  ++passes_;
  const std::vector<models::SampledStep> steps = models::sample_steps(*policy_, states, seeds);
  std::vector<int64_t> actions;
  for (size_t i = 0; i < steps.size(); ++i) {
    asked_[static_cast<size_t>(requests[i].observer)].steps.push_back(steps[i]);
    actions.push_back(steps[i].action);
  }
  return actions;
}

double Learner::learn(const std::vector<Outcome>& outcomes) {
  std::vector<models::SampledStep> steps;
  std::vector<double> returns;
  double first = 0;
  for (size_t i = 0; i < asked_.size(); ++i) {
    const Outcome& outcome = outcomes.at(i);
    std::vector<models::SampledStep>& own = asked_[i].steps;
    if (own.size() != outcome.returns.size())
      throw std::logic_error("observer " + std::to_string(i) + " has " +
                             std::to_string(outcome.returns.size()) + " returns for " +
                             std::to_string(own.size()) + " actions");
    steps.insert(steps.end(), own.begin(), own.end());
    returns.insert(returns.end(), outcome.returns.begin(), outcome.returns.end());
    first += static_cast<double>(outcome.first);
    own.clear();
  }
  optimizer_.zero_grad();
  models::policy_loss(models::log_probabilities(*policy_, steps), returns).backward();
  optimizer_.step();
  first /= static_cast<double>(asked_.size());
  running_reward_ = kRunningShare * first + (1 - kRunningShare) * running_reward_;
  return first;
}

}  // namespace rehearsal::batch_rl
