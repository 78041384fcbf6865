// The policy, how it acts and how it learns: the agent without any call.
#pragma once

#include <torch/optim/adam.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "scenarios/models/policy_network.h"

namespace rehearsal::batch_rl {

struct Settings {
  int64_t observers = 1;
  int64_t episodes = 1;
  int64_t steps = 1;  // of each observer in an episode
  bool batched = true;
  uint64_t seed = 0;

  friend void describe(Settings& settings, auto&& fields) {
    fields(settings.observers, settings.episodes, settings.steps, settings.batched, settings.seed);
  }
};

// An observer's account of an episode.
struct Outcome {
  std::vector<double> returns;  // discounted, of each step
  int64_t first = 0;            // how many steps the first pole stood

  friend void describe(Outcome& outcome, auto&& fields) { fields(outcome.returns, outcome.first); }
};

// An observer has a state, and asks for an action.
struct Request {
  int64_t observer = 0;
  torch::Tensor state;  // {4}
};

class Learner {
 public:
  // A policy on this device.
  explicit Learner(const Settings& settings, const c10::Device& device = c10::kCPU);

  // One pass of the policy over all requests; the actions in their order. A draw depends on the
  // observer and on how often it has asked.
  std::vector<int64_t> act(const std::vector<Request>& requests);

  // One step of Adam on all that was acted since the last one. Takes the outcomes of all observers,
  // in their order; returns the mean of the first poles. Throws std::logic_error unless each has a
  // return for each of its actions.
  double learn(const std::vector<Outcome>& outcomes);

  // Half of the last mean, half of the running reward before.
  [[nodiscard]] double running_reward() const { return running_reward_; }
  [[nodiscard]] bool solved() const { return running_reward_ > models::CartPole::kSolvedReward; }
  // How often the policy was asked, for one observer or for many.
  [[nodiscard]] int64_t passes() const { return passes_; }
  [[nodiscard]] const models::PolicyNetwork& policy() const { return *policy_; }

 private:
  struct Asked {
    std::vector<models::SampledStep> steps;  // of this episode
    uint64_t count = 0;                      // of all
  };

  uint64_t seed_;
  std::vector<Asked> asked_;  // by observer
  std::shared_ptr<models::PolicyNetwork> policy_;
  torch::optim::Adam optimizer_;
  double running_reward_ = 0;
  int64_t passes_ = 0;
};

}  // namespace rehearsal::batch_rl
