#include "scenarios/models/cart_pole.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <stdexcept>

namespace rehearsal::models {
namespace {

using Action = CartPole::Action;

void expect_state(const CartPole::State& state, const CartPole::State& expected) {
  EXPECT_NEAR(state.position, expected.position, 1e-14);
  EXPECT_NEAR(state.velocity, expected.velocity, 1e-14);
  EXPECT_NEAR(state.angle, expected.angle, 1e-14);
  EXPECT_NEAR(state.angular_velocity, expected.angular_velocity, 1e-14);
}

TEST(CartPole, FirstPushFromRestIsWhatTheEquationsSay) {
  // Goal: the equations. Method: at rest and upright they reduce to fractions: with pull = 10/1.1
  // the pole turns with -pull / (0.5 (4/3 - 0.1/1.1)) = -600/41 and the cart moves with 400/41.
  CartPole cart_pole(1);
  cart_pole.reset_to({});
  const CartPole::Step step = cart_pole.step(Action::push_right);
  expect_state(cart_pole.state(), {0, 0.02 * 400 / 41, 0, -0.02 * 600 / 41});
  EXPECT_EQ(step.reward, 1.0);
  EXPECT_FALSE(step.done);
  EXPECT_EQ(step.observation[1], static_cast<float>(cart_pole.state().velocity));
}

TEST(CartPole, StepsFollowTheReference) {
  // Goal: every term counts. Method: five steps, then two from a tilted start, calculated apart
  // from this code, in Python with Gym's formulas.
  CartPole cart_pole(1);
  cart_pole.reset_to({});
  for (int i = 0; i < 3; ++i) cart_pole.step(Action::push_right);
  expect_state(cart_pole.state(),
               {0.0117073170731707, 0.585447355516259, -0.0175609756097561, -0.879886982538855});
  for (int i = 0; i < 2; ++i) cart_pole.step(Action::push_left);
  expect_state(cart_pole.state(),
               {0.031227630906603, 0.195955741794354, -0.0470142390115726, -0.311372235875392});
  cart_pole.reset_to({0.03, -0.2, 0.1, 0.4});
  cart_pole.step(Action::push_left);
  expect_state(cart_pole.state(), {0.026, -0.396387751937511, 0.108, 0.722460971275284});
  cart_pole.step(Action::push_right);
  expect_state(cart_pole.state(),
               {0.0180722449612498, -0.202912257164471, 0.122449219425506, 0.465628918351069});
}

TEST(CartPole, PoleThatFallsEndsTheEpisodeWithAReward) {
  // Goal: 12 degrees end it, and the last step counts. Method: push one way; it takes nine steps.
  CartPole cart_pole(1);
  cart_pole.reset_to({});
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(cart_pole.step(Action::push_right).done);
  const CartPole::Step last = cart_pole.step(Action::push_right);
  EXPECT_TRUE(last.done);
  EXPECT_EQ(last.reward, 1.0);
  EXPECT_LT(cart_pole.state().angle, -12 * M_PI / 180);
  EXPECT_THROW(cart_pole.step(Action::push_left), std::logic_error);
}

TEST(CartPole, CartThatLeavesTheTrackEndsTheEpisode) {
  // Goal: 2.4 metres end it, in both directions. Method: start just inside, moving outwards.
  CartPole cart_pole(1);
  cart_pole.reset_to({.position = 2.39, .velocity = 0.4});
  EXPECT_FALSE(cart_pole.step(Action::push_left).done);
  EXPECT_TRUE(cart_pole.step(Action::push_right).done);
  cart_pole.reset_to({.position = -2.39, .velocity = -1});
  EXPECT_TRUE(cart_pole.step(Action::push_right).done);
}

TEST(CartPole, FiveHundredStepsEndTheEpisode) {
  // Goal: the cap of CartPole-v1. Method: a simple controller that never falls.
  CartPole cart_pole(3);
  cart_pole.reset();
  int steps = 0;
  for (bool done = false; !done; ++steps) {
    const CartPole::State& state = cart_pole.state();
    const bool right = state.angle + 0.5 * state.angular_velocity + 0.05 * state.velocity > 0;
    done = cart_pole.step(right ? Action::push_right : Action::push_left).done;
  }
  EXPECT_EQ(steps, CartPole::kStepsMax);
}

TEST(CartPole, StartsAreDrawnFromSeedAndEpisode) {
  // Goal: a pure function of seed and episode, within ±0.05. Method: 100 episodes of two seeds.
  CartPole first(7);
  CartPole again(7);
  CartPole other(8);
  std::set<double> positions;
  double largest = 0;
  for (int episode = 0; episode < 100; ++episode) {
    EXPECT_EQ(first.reset(), again.reset());
    EXPECT_NE(first.state().position, (other.reset(), other.state().position));
    positions.insert(first.state().position);
    for (const float value : first.reset_to(first.state())) {
      EXPECT_LE(std::abs(value), 0.05f);
      largest = std::max(largest, std::abs(static_cast<double>(value)));
    }
  }
  EXPECT_EQ(positions.size(), 100u);
  EXPECT_GT(largest, 0.045);
}

TEST(CartPole, StepBeforeResetIsRefused) {
  // Goal: no episode without a start. Method: step a fresh one.
  CartPole cart_pole(1);
  EXPECT_THROW(cart_pole.step(Action::push_left), std::logic_error);
}

}  // namespace
}  // namespace rehearsal::models
