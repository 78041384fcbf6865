#include "scenarios/models/cart_pole.h"

#include <xxhash.h>

#include <cmath>
#include <numbers>
#include <stdexcept>

#include "scenarios/models/unit_interval.h"

namespace rehearsal::models {
namespace {

constexpr double kGravity = 9.8;
constexpr double kCartMass = 1.0;
constexpr double kPoleMass = 0.1;
constexpr double kTotalMass = kCartMass + kPoleMass;
constexpr double kHalfPoleLength = 0.5;
constexpr double kPoleMoment = kPoleMass * kHalfPoleLength;
constexpr double kForce = 10.0;
constexpr double kStepSeconds = 0.02;
constexpr double kAngleMax = 12 * 2 * std::numbers::pi / 360;
constexpr double kPositionMax = 2.4;
constexpr double kStartMax = 0.05;

double start_value(uint64_t seed, uint64_t episode, uint64_t index) {
  const uint64_t key[] = {episode, index};
  return (unit_interval(XXH64(key, sizeof key, seed)) * 2 - 1) * kStartMax;
}

}  // namespace

CartPole::Observation CartPole::observe() const {
  return {static_cast<float>(state_.position), static_cast<float>(state_.velocity),
          static_cast<float>(state_.angle), static_cast<float>(state_.angular_velocity)};
}

CartPole::Observation CartPole::reset_to(const State& state) {
  state_ = state;
  step_count_ = 0;
  return observe();
}

CartPole::Observation CartPole::reset() {
  const uint64_t episode = episode_++;
  return reset_to({.position = start_value(seed_, episode, 0),
                   .velocity = start_value(seed_, episode, 1),
                   .angle = start_value(seed_, episode, 2),
                   .angular_velocity = start_value(seed_, episode, 3)});
}

CartPole::Step CartPole::step(Action action) {
  if (step_count_ >= kStepsMax) throw std::logic_error("CartPole: reset before the next step");
  const double force = action == Action::push_right ? kForce : -kForce;
  const double cosine = std::cos(state_.angle);
  const double sine = std::sin(state_.angle);
  const double pull =
      (force + kPoleMoment * state_.angular_velocity * state_.angular_velocity * sine) / kTotalMass;
  const double angular_acceleration =
      (kGravity * sine - cosine * pull) /
      (kHalfPoleLength * (4.0 / 3.0 - kPoleMass * cosine * cosine / kTotalMass));
  const double acceleration = pull - kPoleMoment * angular_acceleration * cosine / kTotalMass;
  // Positions move with the velocities of before the step: Gym's "euler".
  state_.position += kStepSeconds * state_.velocity;
  state_.velocity += kStepSeconds * acceleration;
  state_.angle += kStepSeconds * state_.angular_velocity;
  state_.angular_velocity += kStepSeconds * angular_acceleration;
  ++step_count_;
  const bool fell = std::abs(state_.position) > kPositionMax || std::abs(state_.angle) > kAngleMax;
  const bool done = fell || step_count_ == kStepsMax;
  if (done) step_count_ = kStepsMax;
  return {.observation = observe(), .reward = 1.0, .done = done};
}

}  // namespace rehearsal::models
