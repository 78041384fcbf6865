// The two sides of the reinforcement learning tutorial. The agent has the policy; each observer has
// a cart-pole of its own and asks the agent what to do at every step.
#pragma once

#include <torch/optim/adam.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/api/call_context.h"
#include "scenarios/models/cart_pole.h"
#include "scenarios/models/policy_network.h"

namespace rehearsal::rl {

// How the discounted returns of several observers are calculated. `joined` is the tutorial's way:
// the lists of all observers are put behind each other first, so the last steps of one are credited
// with what the next one earns. `separate` ends an observer's return with its own episode.
enum class Returns { joined, separate };

// Lives at the agent. Used through an RRef, so its methods run one at a time.
class Agent {
 public:
  // Its policy is on this device.
  Agent(int64_t observer_count, Returns returns, const c10::Device& device = c10::kCPU);

  // Draws an action for this observer's state and remembers the step.
  int64_t select_action(int64_t observer, const torch::Tensor& state);

  void report_reward(int64_t observer, double reward);

  // One step of Adam on all that was remembered since the last one. Returns the smallest sum of
  // rewards of an observer.
  double finish_episode();

  // 0.05 of the last smallest sum, 0.95 of the running reward before.
  double running_reward() const { return running_reward_; }

  // How the remembered steps and rewards contradict each other; nothing if they do not. Each step
  // is asked for once, and then rewarded once.
  std::optional<std::string> contradiction() const;

  const models::PolicyNetwork& policy() const { return *policy_; }

 private:
  struct Episode {
    std::vector<models::SampledStep> steps;
    std::vector<double> rewards;
  };

  Returns returns_;
  std::vector<Episode> episodes_;  // by observer
  std::shared_ptr<models::PolicyNetwork> policy_;
  std::unique_ptr<torch::optim::Adam> optimizer_;  // of the policy as it is on its device
  double running_reward_ = 0;
};

// Lives at an observer worker.
class Observer {
 public:
  Observer(int64_t number, uint64_t seed) : number_(number), cart_pole_(seed) {}

  // Runs one episode of at most `steps_max` steps, asking the agent for every action. Parks.
  void run_episode(CallContext& context, const RRef<Agent>& agent, int64_t steps_max);

 private:
  int64_t number_;
  models::CartPole cart_pole_;
};

}  // namespace rehearsal::rl
