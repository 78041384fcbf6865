// An observer without any call.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/batch_rl/learner.h"
#include "scenarios/models/cart_pole.h"

namespace rehearsal::batch_rl {

// A cart with one pole after the other: when one falls, the next is put up, until the episode has
// had its steps.
class Play {
 public:
  Play(const Settings& settings, int64_t observer);

  void begin_episode();
  // Whether there is a step left in this episode.
  [[nodiscard]] bool goes_on() const { return rewards_.size() < steps_; }
  [[nodiscard]] torch::Tensor state() const { return models::tensor_of(observation_); }
  void step(int64_t action);

  // Of the episode, when it has ended.
  [[nodiscard]] Outcome outcome() const { return {returns_, first_}; }
  // Of all episodes.
  [[nodiscard]] int64_t steps() const { return count_; }

 private:
  void begin_pole();

  size_t steps_;
  models::CartPole cart_pole_;
  models::CartPole::Observation observation_{};
  std::vector<double> rewards_;  // of this episode
  std::vector<double> returns_;  // up to the last pole that has ended
  int64_t first_ = 0;
  int64_t count_ = 0;
};

// The end of an episode.
struct Episode {
  double last_reward = 0;
  std::string policy;  // the digest of its parameters
  bool solved = false;
};

// The learner learns from them.
[[nodiscard]] Episode end_episode(Learner& learner, const std::vector<Outcome>& outcomes);

// The same training without any call: all observers step together, and then the agent learns.
class TrainingAlone {
 public:
  explicit TrainingAlone(const Settings& settings);

  [[nodiscard]] Episode next_episode();

 private:
  [[nodiscard]] std::vector<int64_t> act();

  const Settings settings_;
  Learner learner_;
  std::vector<Play> plays_;
};

}  // namespace rehearsal::batch_rl
