#include "scenarios/rl/rl.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include "scenarios/rl/agent.h"
#include "tests/scenarios/simulated.h"

namespace rehearsal::rl {
namespace {

// Two observers, of which the second lives longer.
void play(Agent& agent) {
  for (int i = 0; i < 7; ++i) {
    const int64_t observer = i < 4 ? i % 2 : 1;
    static_cast<void>(agent.select_action(observer, torch::randn({4})));
    agent.report_reward(observer, 1.0);
  }
}

TEST(Agent, EpisodeEndsWithTheSmallestReward) {
  // Goal: last and running reward as in the tutorial. Method: two episodes of known length.
  torch::manual_seed(1);
  Agent agent(2, Returns::joined);
  play(agent);
  EXPECT_EQ(agent.finish_episode(), 2.0);
  EXPECT_DOUBLE_EQ(agent.running_reward(), 0.05 * 2);
  play(agent);
  EXPECT_EQ(agent.finish_episode(), 2.0);
  EXPECT_DOUBLE_EQ(agent.running_reward(), 0.05 * 2 + 0.95 * 0.1);
}

TEST(Agent, OrderInWhichObserversAskChangesNoStep) {
  // Goal: the update depends on what each observer did, not on when. Method: the same steps,
  // observer by observer and interleaved, with one action possible only by the same draws.
  const auto weights_after = [](const std::vector<int64_t>& order) {
    torch::manual_seed(7);
    Agent agent(2, Returns::joined);
    std::vector<int64_t> asked(2, 0);
    for (const int64_t observer : order) {
      // As in a cluster, a draw belongs to the call that makes it.
      torch::manual_seed(
          static_cast<uint64_t>(100 * observer + asked[static_cast<size_t>(observer)]++));
      static_cast<void>(agent.select_action(observer, torch::randn({4})));
      agent.report_reward(observer, 1.0);
    }
    static_cast<void>(agent.finish_episode());
    return digest_of(agent.policy().parameters());
  };
  EXPECT_EQ(weights_after({0, 0, 0, 1, 1}), weights_after({1, 0, 1, 0, 0}));
  EXPECT_NE(weights_after({0, 0, 0, 1, 1}), weights_after({0, 0, 1, 1, 1}));
}

TEST(Agent, SeparateReturnsEndWithTheEpisodeOfTheirObserver) {
  // Goal: the option matters only with several observers. Method: weights after one step.
  const auto weights_after = [](Returns returns, int64_t observers) {
    torch::manual_seed(7);
    Agent agent(observers, returns);
    for (int64_t i = 0; i < 6; ++i) {
      static_cast<void>(agent.select_action(i % observers, torch::randn({4})));
      agent.report_reward(i % observers, 1.0);
    }
    static_cast<void>(agent.finish_episode());
    return digest_of(agent.policy().parameters());
  };
  EXPECT_EQ(weights_after(Returns::joined, 1), weights_after(Returns::separate, 1));
  EXPECT_NE(weights_after(Returns::joined, 2), weights_after(Returns::separate, 2));
}

TEST(Agent, ARewardForNoStepOrTwoStepsForNoneContradict) {
  // Goal: the scenario's invariant. Method: an episode that goes wrong in both ways.
  Agent agent(2, Returns::joined);
  EXPECT_EQ(agent.contradiction(), std::nullopt);
  static_cast<void>(agent.select_action(1, torch::randn({4})));
  EXPECT_EQ(agent.contradiction(), std::nullopt);
  static_cast<void>(agent.select_action(1, torch::randn({4})));
  EXPECT_EQ(agent.contradiction(), "observer 1 has 0 rewards for 2 steps");
  for (int i = 0; i < 3; ++i) agent.report_reward(1, 1.0);
  EXPECT_EQ(agent.contradiction(), "observer 1 has 3 rewards for 2 steps");
}

TEST(Rl, ItsInvariantsAreLookedAtAllTheTime) {
  // Goal: `rehearsal run` and `hunt` judge what a scenario says of its values. Method: one more
  // invariant, which the first step breaks.
  Scenario broken = scenario();
  ASSERT_EQ(broken.invariants.size(), 1u);
  broken.invariants.push_back({"idle", [](const sim::Values& values) {
                                 return values.of<Observer>("observer0").empty()
                                            ? std::nullopt
                                            : std::optional<std::string>("there is an observer");
                               }});
  const SimulatedRun run = simulated(broken, 1, sim::FaultLevel::none);
  EXPECT_EQ(failure_text(run.outcome), "idle: the values: there is an observer");
}

TEST(Rl, FaultsChangeNoBit) {
  // Goal: the result is a function of the seed alone. Method: three observers, every level.
  const Scenario rl = scenario();
  const auto calm = simulated(rl, 5, sim::FaultLevel::none, {"observers=3"});
  ASSERT_TRUE(calm.outcome.ok) << failure_text(calm.outcome);
  EXPECT_EQ(calm.outcome.results.numbers().at("episodes"), 2);
  for (const sim::FaultLevel faults : {sim::FaultLevel::mild, sim::FaultLevel::hostile}) {
    const auto run = simulated(rl, 5, faults, {"observers=3"});
    ASSERT_TRUE(run.outcome.ok) << failure_text(run.outcome);
    EXPECT_EQ(run.outcome.results.digest(), calm.outcome.results.digest());
  }
}

TEST(Rl, RewardRisesAndIsReportedEveryTenEpisodes) {
  // Goal: it learns in the simulator. Method: 60 whole episodes.
  const auto run = simulated(scenario(), 1, sim::FaultLevel::none, {"size=full", "episodes=60"});
  ASSERT_TRUE(run.outcome.ok) << failure_text(run.outcome);
  ASSERT_EQ(run.lines.size(), 6u);
  EXPECT_EQ(run.lines[5].substr(0, 13), "episode    60");
  EXPECT_GT(run.outcome.results.numbers().at("running_reward"), 25);
  EXPECT_EQ(run.outcome.results.numbers().at("solved"), 0);
}

}  // namespace
}  // namespace rehearsal::rl
