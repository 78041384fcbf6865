#include "sim/fault_plan.h"

#include <gtest/gtest.h>

namespace rehearsal::sim {
namespace {

constexpr Duration kPeerTimeout = std::chrono::seconds(30);
constexpr uint64_t kSeeds = 400;

FaultPlan plan_of(uint64_t seed, const ClusterOptions& options) {
  KeyedDecisions decisions(Seed{seed}, options.overrides);
  return draw_faults(decisions, options, 4, kPeerTimeout);
}

template <class Predicate>
uint64_t count(const ClusterOptions& options, Predicate holds) {
  uint64_t seeds = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) seeds += holds(plan_of(seed, options)) ? 1 : 0;
  return seeds;
}

TEST(FaultPlan, LevelNoneHasNoFaults) {
  const ClusterOptions options{.faults = FaultLevel::none};
  EXPECT_EQ(plan_of(1, options).describe({"a", "b", "c", "d"}), "none");
  EXPECT_EQ(plan_of(1, options).weather.cut_millionths, 0u);
  EXPECT_TRUE(plan_of(1, options).scheduling.start.is_constant());
}

// Goal: each class of fault is on in about half of the seeds, so that each is also off.
TEST(FaultPlan, MildTurnsEachClassOnInHalfOfTheSeeds) {
  const ClusterOptions options{.faults = FaultLevel::mild};
  const auto half = [&](auto holds) { EXPECT_NEAR(count(options, holds), kSeeds / 2, 60); };
  half([](const FaultPlan& plan) { return plan.weather.cut_millionths > 0; });
  half([](const FaultPlan& plan) { return plan.weather.retransmit_millionths > 0; });
  half([](const FaultPlan& plan) { return plan.weather.refuse_millionths > 0; });
  half([](const FaultPlan& plan) { return plan.weather.silence_millionths > 0; });
  EXPECT_EQ(count(options, [](const auto& plan) { return plan.weather.partition_millionths > 0; }),
            0u);
}

TEST(FaultPlan, HostilePartitionsAreShorterThanThePeerTimeout) {
  const ClusterOptions options{.faults = FaultLevel::hostile};
  const uint64_t partitioned = count(options, [](const FaultPlan& plan) {
    EXPECT_LT(plan.weather.partition_max, kPeerTimeout / 4);
    return plan.weather.partition_millionths > 0;
  });
  EXPECT_NEAR(partitioned, kSeeds / 2, 60);
}

TEST(FaultPlan, LongPartitionsOutlastThePeerTimeout) {
  const ClusterOptions options{.faults = FaultLevel::none, .long_partitions = true};
  EXPECT_EQ(count(options,
                  [](const FaultPlan& plan) {
                    return plan.weather.partition_millionths > 0 &&
                           plan.weather.partition_max > kPeerTimeout;
                  }),
            kSeeds);
}

TEST(FaultPlan, StrengthsSpanTheirRange) {
  const ClusterOptions options{.faults = FaultLevel::mild};
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const uint64_t cut = plan_of(seed, options).weather.cut_millionths;
    if (cut == 0) continue;
    least = std::min(least, cut);
    most = std::max(most, cut);
  }
  EXPECT_GE(least, 500u);
  EXPECT_LT(least, 700u);
  EXPECT_LE(most, 60'000u);
  EXPECT_GT(most, 40'000u);
}

TEST(FaultPlan, CrashesHitEveryWorkerEarlyAndLate) {
  const ClusterOptions options{.crashes = 1, .restart = Restart::drawn};
  std::vector<uint64_t> victims(4);
  uint64_t early = 0;
  uint64_t late = 0;
  uint64_t back = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const FaultPlan plan = plan_of(seed, options);
    ASSERT_EQ(plan.crashes.size(), 1u);
    ++victims[plan.crashes[0].worker.value];
    early += plan.crashes[0].event < 32 ? 1 : 0;
    late += plan.crashes[0].event > 1000 ? 1 : 0;
    back += plan.crashes[0].restarts ? 1 : 0;
  }
  for (const uint64_t hits : victims) EXPECT_NEAR(hits, kSeeds / 4, 45);
  EXPECT_GT(early, kSeeds / 4);
  EXPECT_GT(late, kSeeds / 12);
  EXPECT_NEAR(back, kSeeds / 2, 60);
}

TEST(FaultPlan, AnOverrideTurnsOneClassOff) {
  uint64_t seed = 1;
  while (plan_of(seed, {}).weather.cut_millionths == 0) ++seed;
  KeyedDecisions plain(Seed{seed}, {});
  const Key cut_on{.kind = DecisionKind::swarm, .number = 4};
  ClusterOptions options;
  options.overrides = {{cut_on, 0}};
  const FaultPlan with = plan_of(seed, {});
  const FaultPlan without = plan_of(seed, options);
  EXPECT_GT(with.weather.cut_millionths, 0u);
  EXPECT_EQ(without.weather.cut_millionths, 0u);
  EXPECT_EQ(with.weather.retransmit_millionths, without.weather.retransmit_millionths);
}

}  // namespace
}  // namespace rehearsal::sim
