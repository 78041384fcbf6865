#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "sim/cluster.h"
#include "sim/decisions/keyed_decisions.h"
#include "sim/strategies/strategies.h"
#include "tests/sim/adding_program.h"
#include "tests/sim/strategies/chain_program.h"

namespace rehearsal::sim {
namespace {

Order repeat(const Chains& program, const std::vector<Override>& overrides) {
  KeyedDecisions decisions(Seed{1}, overrides, Otherwise::benign);
  HeldBack held(decisions);
  Order order = run(program, held);
  EXPECT_TRUE(decisions.absent().empty());
  return order;
}

TEST(HeldBack, OneDecisionHoldsAnEventBackBehindSoManyOthers) {
  const Override hold{hold_key(lane(0), 1), 3};
  EXPECT_EQ(to_string(hold), "hold:0.0>0.0#1.0=3");
  EXPECT_EQ(repeat({3, 4}, {hold}), (Order{0, 1, 1, 1, 0, 0, 1}));
  EXPECT_EQ(repeat({3, 4}, {}), (Order{0, 0, 0, 1, 1, 1, 1}));
}

TEST(HeldBack, WhereAllAreHeldTheFirstGoes) {
  const Override one{hold_key(lane(0), 0), 1000};
  const Override other{hold_key(lane(1), 0), 1000};
  EXPECT_EQ(repeat({2, 2}, {one, other}), (Order{0, 0, 1, 1}));
}

TEST(HeldBack, RepeatsEveryOrderThatAStrategyChooses) {
  // Goal: what was noted is the schedule, whole. Method: random walks through a program, repeated
  // from their notes alone.
  const Chains program = {4, 3, 5};
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    KeyedDecisions decisions(Seed{seed}, {}, Otherwise::drawn, /*record=*/true);
    HeldBack noting(decisions, std::make_unique<RandomWalk>(decisions));
    const Order order = run(program, noting);
    EXPECT_EQ(repeat(program, decisions.notes()), order) << seed;
  }
}

TEST(HeldBack, ARunIsRepeatedWithoutItsStrategy) {
  // Goal: under any strategy, the same number of events of every worker at the same instant of
  // virtual time. Method: overrides of everything that was chosen, the strategy's own choices
  // excepted.
  const Program program = adding_program();
  for (const StrategyKind kind : kStrategyKinds) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      Cluster first(Seed{seed}, program,
                    {.strategy = kind, .faults = FaultLevel::hostile, .record_choices = true});
      const RunReport chosen = first.run();
      std::vector<Override> overrides = chosen.choices;
      std::erase_if(overrides, [](const Override& choice) {
        return choice.key.kind == DecisionKind::pick || choice.key.kind == DecisionKind::plan ||
               choice.key.kind == DecisionKind::priority;
      });
      if (kind != StrategyKind::delays) {
        EXPECT_EQ(chosen.deviations.empty(), kind == StrategyKind::timed_swarm) << name_of(kind);
      }
      overrides.insert(overrides.end(), chosen.deviations.begin(), chosen.deviations.end());
      Cluster second(
          Seed{seed}, program,
          {.faults = FaultLevel::hostile, .overrides = overrides, .otherwise = Otherwise::benign});
      const RunReport& again = second.run();
      EXPECT_TRUE(again.absent_overrides.empty());
      EXPECT_EQ(again.virtual_time, chosen.virtual_time) << name_of(kind) << " " << seed;
      EXPECT_EQ(again.messages, chosen.messages);
      for (size_t i = 0; i < chosen.workers.size(); ++i)
        EXPECT_EQ(again.workers[i].decisions, chosen.workers[i].decisions);
    }
  }
}

TEST(Profile, CountsTheEventsOfEachChain) {
  // Goal: what a run learns for another. Method: the sum is what happened; two runs count alike.
  const Program program = adding_program();
  const auto counts = [&program](bool profile) {
    Cluster cluster(Seed{3}, program, {.profile = profile});
    return cluster.run().counts;
  };
  const std::vector<ChainCount> first = counts(true);
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(first, counts(true));
  EXPECT_TRUE(counts(false).empty());
}

}  // namespace
}  // namespace rehearsal::sim
