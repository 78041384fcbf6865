// The agent of the scenario with observers of another world, as the reference's test has them.
#include <gtest/gtest.h>

#include <vector>

#include "scenarios/rl/agent.h"
#include "tests/reference/row.h"

namespace rehearsal::rl {
namespace {

constexpr int64_t kSteps = 10;
constexpr int64_t kObservers = 3;

// Ten steps an episode, with rewards that depend on nothing.
class DummyObserver {
 public:
  explicit DummyObserver(int64_t number) : number_(number) {}

  // Asks the agent, which waits for this call, at every step. The number of rewards.
  int64_t run_episode(CallContext& context, const RRef<Agent>& agent) {
    int64_t rewards = 0;
    for (; rewards < kSteps; ++rewards) {
      const int64_t action =
          context.rpc_sync(agent, &Agent::select_action, number_, torch::randn({4}));
      EXPECT_TRUE(action == 0 || action == 1) << action;
      context.rpc_sync(agent, &Agent::report_reward, number_,
                       torch::rand({1}, torch::kDouble).item<double>() * 475);
    }
    return rewards;
  }

 private:
  int64_t number_;
};

void agent_main(Worker& worker) {
  const RRef<Agent> agent = worker.rref(Agent(kObservers, Returns::joined));
  std::vector<RRef<DummyObserver>> observers;
  for (int64_t i = 0; i < kObservers; ++i)
    observers.push_back(worker.remote<DummyObserver>("worker" + std::to_string(i + 1), i));
  double running_reward = 0;
  int64_t episodes = 0;
  for (; running_reward <= models::CartPole::kSolvedReward && episodes < 20; ++episodes) {
    std::vector<Future<int64_t>> running;
    for (const auto& observer : observers)
      running.push_back(observer.rpc_async(&DummyObserver::run_episode, agent));
    for (const auto& one : running) EXPECT_EQ(one.wait(), kSteps);
    running_reward = agent.with_local([](Agent& value) {
      EXPECT_EQ(value.contradiction(), std::nullopt);
      const double smallest = value.finish_episode();
      EXPECT_GT(smallest, 0);
      EXPECT_LT(smallest, 475 * kSteps);
      return value.running_reward();
    });
    EXPECT_GT(running_reward, 0);
  }
  EXPECT_GE(episodes, 4);
  EXPECT_LE(episodes, 8);
}

// Rows: examples/reinforcement_learning_rpc_test::ReinforcementLearningRpcTest.test_rl_rpc
TEST(RlCallbacks, ThreeObserversAskTheAgentThatWaitsForThemUntilItsRewardIsHighEnough) {
  // Goal: every observer reports ten rewards in every episode, and the running reward passes 475
  // after some. Method: the agent of `rl`, in both worlds.
  FunctionRegistry registry;
  registry.type<Agent>("Agent")
      .method("select_action", &Agent::select_action)
      .method("report_reward", &Agent::report_reward);
  registry.type<DummyObserver>("DummyObserver")
      .constructor<int64_t>()
      .method("run_episode", &DummyObserver::run_episode);
  reference::in_both_worlds(
      reference::one_caller(std::move(registry), &agent_main, static_cast<uint32_t>(kObservers)),
      {.seeds = 20});
}

}  // namespace
}  // namespace rehearsal::rl
