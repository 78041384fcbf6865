#include "scenarios/rl/agent.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace rehearsal::rl {
namespace {

constexpr double kLearningRate = 1e-2;
constexpr double kRunningShare = 0.05;

void append(std::vector<double>& all, const std::vector<double>& part) {
  all.insert(all.end(), part.begin(), part.end());
}

}  // namespace

Agent::Agent(int64_t observer_count, Returns returns, const c10::Device& device)
    : returns_(returns),
      episodes_(static_cast<size_t>(observer_count)),
      policy_(std::make_shared<models::PolicyNetwork>()) {
  policy_->to(device);
  optimizer_ = std::make_unique<torch::optim::Adam>(policy_->parameters(),
                                                    torch::optim::AdamOptions(kLearningRate));
}

int64_t Agent::select_action(int64_t observer, const torch::Tensor& state) {
  auto& steps = episodes_.at(static_cast<size_t>(observer)).steps;
  steps.push_back(models::sample_step(*policy_, state));
  return steps.back().action;
}

void Agent::report_reward(int64_t observer, double reward) {
  episodes_.at(static_cast<size_t>(observer)).rewards.push_back(reward);
}

std::optional<std::string> Agent::contradiction() const {
  for (size_t i = 0; i < episodes_.size(); ++i) {
    const size_t steps = episodes_[i].steps.size();
    const size_t rewards = episodes_[i].rewards.size();
    if (steps != rewards && steps != rewards + 1)
      return "observer " + std::to_string(i) + " has " + std::to_string(rewards) + " rewards for " +
             std::to_string(steps) + " steps";
  }
  return std::nullopt;
}

double Agent::finish_episode() {
  std::vector<models::SampledStep> steps;
  std::vector<double> rewards;
  std::vector<double> returns;
  double smallest = std::numeric_limits<double>::infinity();
  for (Episode& episode : episodes_) {
    steps.insert(steps.end(), episode.steps.begin(), episode.steps.end());
    append(rewards, episode.rewards);
    append(returns, models::discounted_returns(episode.rewards));
    const double sum = std::accumulate(episode.rewards.begin(), episode.rewards.end(), 0.0);
    smallest = std::min(smallest, sum);
    episode = {};
  }
  if (returns_ == Returns::joined) returns = models::discounted_returns(rewards);
  optimizer_->zero_grad();
  models::policy_loss(models::log_probabilities(*policy_, steps), returns).backward();
  optimizer_->step();
  running_reward_ = kRunningShare * smallest + (1 - kRunningShare) * running_reward_;
  return smallest;
}

void Observer::run_episode(CallContext& context, const RRef<Agent>& agent, int64_t steps_max) {
  models::CartPole::Step step{.observation = cart_pole_.reset()};
  for (int64_t i = 0; i < steps_max && !step.done; ++i) {
    const int64_t action = context.rpc_sync(agent, &Agent::select_action, number_,
                                            models::tensor_of(step.observation));
    step = cart_pole_.step(static_cast<models::CartPole::Action>(action));
    context.rpc_sync(agent, &Agent::report_reward, number_, step.reward);
  }
}

}  // namespace rehearsal::rl
