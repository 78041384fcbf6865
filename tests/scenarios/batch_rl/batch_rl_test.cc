#include "scenarios/batch_rl/batch_rl.h"

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/batch_rl/agent.h"
#include "sim/cluster.h"
#include "tests/reference/row.h"
#include "tests/scenarios/one_at_once.h"
#include "tests/scenarios/simulated.h"

namespace rehearsal::batch_rl {
namespace {

using one_at_once::number_of;

Settings small_settings(int64_t observers) {
  return {.observers = observers, .episodes = 2, .steps = 6, .batched = true, .seed = 3};
}

torch::Tensor some_state() { return torch::tensor({0.1F, -0.2F, 0.3F, -0.4F}); }

TEST(BatchRl, EveryEpisodeHasTheBitsOfOneProcessInBothWorlds) {
  // Goal: three observers, whose requests come in any order, teach the agent what one process
  // learns. Method: the scenario, which compares each episode itself and throws, in both worlds.
  const Scenario batches = scenario();
  const Options options = batches.options.parse({"observers=3"}, "tiny");
  std::list<Reporter> reporters;
  reference::in_both_worlds([&] {
    Reporter& reporter = reporters.emplace_back();
    reporter.line = reporter.progress = [](const std::string&) {};
    return batches.program({options, Seed{11}, reporter});
  });
  ASSERT_GE(reporters.size(), 28u) << "25 simulated runs, and three over TCP";
  for (const Reporter& reporter : reporters) {
    EXPECT_EQ(reporter.results.numbers().at("passes"), 12);
    EXPECT_EQ(reporter.results.digest(), reporters.front().results.digest());
  }
}

TEST(BatchRl, FaultsChangeNoBit) {
  // Goal: the order in which observers ask decides nothing. Method: five of them at every level,
  // and another seed.
  const auto calm = simulated(scenario(), 5, sim::FaultLevel::none, {"observers=5"});
  ASSERT_TRUE(calm.outcome.ok) << failure_text(calm.outcome);
  EXPECT_EQ(calm.outcome.results.tensors().size(), 4u);
  for (const sim::FaultLevel faults : {sim::FaultLevel::mild, sim::FaultLevel::hostile}) {
    const auto run = simulated(scenario(), 5, faults, {"observers=5"});
    ASSERT_TRUE(run.outcome.ok) << failure_text(run.outcome);
    EXPECT_EQ(run.outcome.results.digest(), calm.outcome.results.digest());
    EXPECT_EQ(run.outcome.results.numbers(), calm.outcome.results.numbers());
  }
  const auto other = simulated(scenario(), 4, sim::FaultLevel::none, {"observers=5"});
  EXPECT_NE(other.outcome.results.digest(), calm.outcome.results.digest());
}

TEST(BatchRl, OnePassForEachObserverLearnsTheSameWithMorePasses) {
  // Goal: batching changes when actions are computed, not which. Method: both forms.
  const auto batched = simulated(scenario(), 5, sim::FaultLevel::mild, {"observers=3"});
  const auto single =
      simulated(scenario(), 5, sim::FaultLevel::mild, {"observers=3", "form=single"});
  ASSERT_TRUE(batched.outcome.ok) << failure_text(batched.outcome);
  ASSERT_TRUE(single.outcome.ok) << failure_text(single.outcome);
  const Results& one = batched.outcome.results;
  const Results& other = single.outcome.results;
  EXPECT_EQ(one.tensors(), other.tensors());
  EXPECT_EQ(one.numbers().at("running reward"), other.numbers().at("running reward"));
  EXPECT_EQ(one.numbers().at("passes"), 12);
  EXPECT_EQ(other.numbers().at("passes"), 36);
}

TEST(BatchRl, FourObserversLearnToKeepThePoleUp) {
  // Goal: the default run is solved. Method: its last line.
  const auto run = simulated(scenario(), 2, sim::FaultLevel::mild, {"size=full"});
  ASSERT_TRUE(run.outcome.ok) << failure_text(run.outcome);
  ASSERT_FALSE(run.lines.empty());
  EXPECT_EQ(run.lines.back().substr(0, 10), "Solved in ");
  EXPECT_EQ(run.outcome.results.numbers().at("solved"), 1);
}

TEST(BatchRlPlay, PutsUpThePoleAgainAndDiscountsWithinEach) {
  // Goal: an episode has all of its steps, and a return ends with its pole. Method: always push
  // right, which every pole bears for about ten steps.
  Settings settings = small_settings(1);
  settings.steps = 25;
  Play play(settings, 0);
  for (int episode = 0; episode < 2; ++episode) {
    play.begin_episode();
    while (play.goes_on()) play.step(1);
    const Outcome outcome = play.outcome();
    ASSERT_EQ(outcome.returns.size(), 25u);
    EXPECT_GT(outcome.first, 5);
    EXPECT_LT(outcome.first, 15);
    const auto last = static_cast<size_t>(outcome.first) - 1;
    EXPECT_EQ(outcome.returns[last], 1);
    EXPECT_DOUBLE_EQ(outcome.returns[last - 1], 1 + models::kRewardDiscount);
    EXPECT_GT(outcome.returns[last + 1], 4);
    EXPECT_EQ(outcome.returns.back(), 1);
  }
  EXPECT_EQ(play.steps(), 50);
}

TEST(BatchRlLearner, RefusesReturnsThatAreNotThoseOfItsActions) {
  Learner learner(small_settings(2));
  (void)learner.act({{0, some_state()}, {1, some_state()}});
  try {
    (void)learner.learn({{.returns = {1}, .first = 1}, {.returns = {2, 1}, .first = 2}});
    FAIL() << "it learnt";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "observer 1 has 2 returns for 1 actions");
  }
}

TEST(BatchRlLearner, WhatItDrawsDependsOnTheObserverAndItsCountAlone) {
  // Goal: no order decides an action. Method: forty actions, one by one and in batches.
  Learner together(small_settings(2));
  Learner apart(small_settings(2));
  std::vector<int64_t> batched;
  std::vector<int64_t> first;
  std::vector<int64_t> second;
  for (int i = 0; i < 20; ++i) {
    for (const int64_t action : together.act({{0, some_state()}, {1, some_state()}}))
      batched.push_back(action);
    second.push_back(apart.act({{1, some_state()}}).front());
  }
  for (int i = 0; i < 20; ++i) first.push_back(apart.act({{0, some_state()}}).front());
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(batched[2 * i], first[i]) << i;
    EXPECT_EQ(batched[2 * i + 1], second[i]) << i;
  }
  EXPECT_NE(first, second);
  EXPECT_EQ(together.passes(), 20);
  EXPECT_EQ(apart.passes(), 40);
}

TEST(BatchRlLearner, RunningRewardIsHalfOldAndHalfNew) {
  Learner learner(small_settings(2));
  for (const double expected : {3.0, 4.5}) {
    (void)learner.act({{0, some_state()}, {1, some_state()}});
    EXPECT_EQ(learner.learn({{.returns = {1}, .first = 4}, {.returns = {2}, .first = 8}}), 6);
    EXPECT_EQ(learner.running_reward(), expected);
  }
}

// An agent that keeps its stack until the answer is there.
class HoldingAgent : public Agent {
 public:
  using Agent::Agent;
  int64_t hold(int64_t observer, const torch::Tensor& state) {
    return select_action(observer, state).wait();
  }
};

// Two observers, at an agent that runs one function at once.
Program one_function_at_once(const one_at_once::Ask<HoldingAgent>& ask) {
  FunctionRegistry registry;
  registry.type<HoldingAgent>("HoldingAgent")
      .constructor<CallContext&, Settings>()
      .method("select_action", &Agent::select_action)
      .method("hold", &HoldingAgent::hold);
  return one_at_once::program(std::move(registry), "agent", "observer", small_settings(2), ask);
}

TEST(BatchRl, AnObserverThatWaitsHoldsNoExecutionAtTheAgent) {
  // Goal: however many observers wait, the agent serves. Method: it may execute one function at
  // once, and two observers wait for each other, in both worlds.
  const Program program = one_function_at_once([](Worker& worker, const RRef<HoldingAgent>& agent) {
    for (int step = 0; step < 3; ++step) {
      const int64_t action = agent.rpc_sync(&Agent::select_action, number_of(worker), some_state());
      EXPECT_TRUE(action == 0 || action == 1) << action;
    }
  });
  reference::in_both_worlds(program, {.adjust_node = one_at_once::adjust_node});
}

TEST(BatchRl, OneThatHeldAnExecutionWouldLetNoOtherIn) {
  // Goal: the test before can fail. Method: the same with a method that waits for the answer.
  const auto kinds = one_at_once::failures<HoldingAgent>(
      one_function_at_once, [](Worker& worker, const RRef<HoldingAgent>& agent) {
        static_cast<void>(agent.rpc_sync(&HoldingAgent::hold, number_of(worker), some_state()));
      });
  const std::map<std::string, ErrorKind> expected = {{"observer0", ErrorKind::timeout},
                                                     {"observer1", ErrorKind::timeout}};
  EXPECT_EQ(kinds, expected);
}

TEST(BatchRl, AnObserverThatComesTwiceInABatchIsSeen) {
  // Goal: a batch is one request of each. Method: observer 1 twice.
  FunctionRegistry registry;
  register_agent(registry);
  Program program(std::move(registry));
  program.worker("agent");
  program.worker("observer", [](Worker& worker) {
    const auto agent = worker.remote<Agent>("agent", small_settings(2));
    const auto first = agent.rpc_async(&Agent::select_action, int64_t{1}, some_state());
    const Error error = reference::error_of([&] {
      static_cast<void>(agent.rpc_sync(&Agent::select_action, int64_t{1}, some_state()));
    });
    EXPECT_EQ(error.text, "std::logic_error: observer 0 is not once in its batch");
    EXPECT_EQ(reference::error_of([&] { static_cast<void>(first.wait()); }).text, error.text);
  });
  sim::Cluster(Seed{1}, program).run();
}

TEST(BatchRl, AnObserverThatRunsAheadIsSeen) {
  // Goal: the invariant that the scenario declares. Method: an agent of one observer, which two
  // ask.
  const Scenario batches = scenario();
  ASSERT_EQ(batches.invariants.size(), 1u);
  FunctionRegistry registry;
  register_agent(registry);
  Program program(std::move(registry));
  program.worker("agent", [](Worker& worker) {
    const auto agent = worker.remote<Agent>("agent", small_settings(1));
    for (const char* name : {"observer0", "observer1"}) {
      const auto observer = worker.remote<Observer>(name, small_settings(1), int64_t{0});
      worker.publish(name, observer);
      static_cast<void>(observer.rpc_sync(&Observer::run_episode, agent));
    }
  });
  program.worker("observer", Count{2});
  sim::Cluster cluster(Seed{1}, program);
  cluster.add_invariant(batches.invariants[0].name, batches.invariants[0].broken);
  const sim::RunReport& report = cluster.try_run();
  ASSERT_FALSE(report.ok);
  EXPECT_EQ(to_text(*report.failure),
            "steps: the values: an observer has made 6 steps, and another 0");
}

}  // namespace
}  // namespace rehearsal::batch_rl
