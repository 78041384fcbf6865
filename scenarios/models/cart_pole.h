// The cart-pole problem, step for step as Gym's CartPole-v1 computes it.
//
// Source: A. G. Barto, R. S. Sutton, C. W. Anderson, "Neuronlike adaptive elements that can solve
// difficult learning control problems", IEEE Transactions on Systems, Man, and Cybernetics 13
// (1983); constants, Euler integration and episode rules from Gym,
// its CartPole environment, and the cap of 500 steps from its registration as
// CartPole-v1.
//
// An episode is a pure function of (seed, number of the episode, actions): the start is drawn by
// hashing integers. Computed in double precision; an observation has single precision, as in Gym.
#pragma once

#include <array>
#include <cstdint>

namespace rehearsal::models {

class CartPole {
 public:
  static constexpr int kStepsMax = 500;
  // The mean return that counts as a solution (Gym's reward threshold).
  static constexpr double kSolvedReward = 475.0;

  struct State {
    double position = 0;          // of the cart, metres
    double velocity = 0;          // of the cart, metres per second
    double angle = 0;             // of the pole from upright, radians
    double angular_velocity = 0;  // of the pole, radians per second
  };
  using Observation = std::array<float, 4>;
  struct Step {
    Observation observation{};
    double reward = 0;
    bool done = false;
  };
  enum class Action { push_left = 0, push_right = 1 };

  explicit CartPole(uint64_t seed) : seed_(seed) {}

  // Starts the next episode: each of the four numbers is in [-0.05, 0.05).
  Observation reset();

  // Starts an episode from a given state.
  Observation reset_to(const State& state);

  // Applies one action for 0.02 seconds. The reward is 1 for each step, the last included; the
  // episode is done when the cart leaves ±2.4 m, the pole leaves ±12°, or after `kStepsMax` steps.
  // After that, or before the first reset, it throws std::logic_error.
  Step step(Action action);

  const State& state() const { return state_; }

 private:
  Observation observe() const;

  uint64_t seed_;
  uint64_t episode_ = 0;
  State state_;
  int step_count_ = kStepsMax;
};

}  // namespace rehearsal::models
