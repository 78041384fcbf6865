#include "sim/world/fault_plan.h"

#include <gtest/gtest.h>

#include <set>

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
  EXPECT_EQ(plan_of(1, options).describe({"a", "b", "c", "d"}), "links 50 µs to 200 µs");
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

TEST(FaultPlan, ShortLivesAreCountedInMessagesOrInFramesFromOneOn) {
  // Goal: both ways to count are drawn, each from the shortest life on. Method: the class
  // `short_lives` by name, at level hostile; elsewhere it is off.
  const ClusterOptions options{.faults = FaultLevel::hostile};
  std::set<uint64_t> messages;
  std::set<uint64_t> frames;
  for (uint64_t seed = 1; seed <= 4 * kSeeds; ++seed) {
    const net_fake::Weather weather = plan_of(seed, options).weather;
    EXPECT_TRUE(weather.life_messages == 0 || weather.life_frames == 0);
    messages.insert(weather.life_messages);
    frames.insert(weather.life_frames);
  }
  for (const std::set<uint64_t>& lives : {messages, frames}) {
    EXPECT_EQ(*lives.begin(), 0u);
    EXPECT_EQ(*std::next(lives.begin()), 1u);
    EXPECT_GT(*lives.rbegin(), 24u);
    EXPECT_LE(*lives.rbegin(), 32u);
  }
  EXPECT_NEAR(count(options, [](const auto& plan) { return plan.weather.life_frames > 0; }),
              kSeeds / 4, 50);
  const ClusterOptions without{.faults = FaultLevel::hostile,
                               .without = {fault_class_named("short_lives").value()}};
  const auto any = [](const FaultPlan& plan) {
    return plan.weather.life_messages + plan.weather.life_frames > 0;
  };
  EXPECT_EQ(count(without, any), 0u);
  EXPECT_EQ(count({.faults = FaultLevel::mild}, any), 0u);
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
  ClusterOptions options;
  options.overrides = {{class_key(FaultClass::resets), 0}};
  const FaultPlan with = plan_of(seed, {});
  const FaultPlan without = plan_of(seed, options);
  EXPECT_GT(with.weather.cut_millionths, 0u);
  EXPECT_EQ(without.weather.cut_millionths, 0u);
  EXPECT_EQ(with.weather.retransmit_millionths, without.weather.retransmit_millionths);
}

// Goal: few faults, some and many are equally likely, so that each is also met nearly alone.
TEST(FaultPlan, EveryNumberOfClassesIsEquallyLikely) {
  const ClusterOptions options{.faults = FaultLevel::mild};
  std::vector<uint64_t> seeds_with(7);
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const net_fake::Weather weather = plan_of(seed, options).weather;
    uint64_t on = 0;
    for (const uint64_t millionths :
         {weather.cut_millionths, weather.retransmit_millionths, weather.refuse_millionths,
          weather.silence_millionths, weather.corrupt_millionths, weather.hang_millionths})
      on += millionths > 0 ? 1 : 0;
    ++seeds_with[on];
  }
  for (const uint64_t seeds : seeds_with) EXPECT_NEAR(seeds, kSeeds / 7, 27);
}

TEST(FaultPlan, WhatIsLeftOutIsOffAndChangesNothingElse) {
  const ClusterOptions all{.faults = FaultLevel::hostile, .crashes = 1, .long_partitions = true};
  ClusterOptions some = all;
  some.without = {FaultClass::resets, FaultClass::partitions, FaultClass::crashes};
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const FaultPlan whole = plan_of(seed, all);
    const FaultPlan less = plan_of(seed, some);
    EXPECT_EQ(less.weather.cut_millionths, 0u);
    EXPECT_EQ(less.weather.partition_millionths, 0u);
    EXPECT_TRUE(less.crashes.empty());
    EXPECT_EQ(less.weather.retransmit_millionths, whole.weather.retransmit_millionths);
    EXPECT_EQ(less.weather.silence_millionths, whole.weather.silence_millionths);
    EXPECT_EQ(less.link.delay.describe(), whole.link.delay.describe());
  }
  some.without.assign(kFaultClasses.begin(), kFaultClasses.end());
  EXPECT_EQ(plan_of(1, some).describe({"a", "b", "c", "d"}), "links 100 µs");
}

// Goal: what hostile does to machines is a small part of what makes a peer lost; mild only lets
// clocks differ.
TEST(FaultPlan, MachinesAreDisturbedForShorterThanThePeerTimeout) {
  const auto machines_of = [](uint64_t seed, FaultLevel level) {
    return plan_of(seed, {.faults = level}).machines;
  };
  uint64_t paused = 0;
  uint64_t slow = 0;
  uint64_t clocked = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const MachineFaults hostile = machines_of(seed, FaultLevel::hostile);
    EXPECT_LE(hostile.pause_max, kPeerTimeout / 16);
    EXPECT_LE(hostile.jump_max, kPeerTimeout / 16);
    for (const Duration step : hostile.steps) EXPECT_LE(step, std::chrono::milliseconds(2));
    paused += hostile.pause_millionths > 0 ? 1 : 0;
    slow += hostile.steps.empty() ? 0 : 1;
    const MachineFaults mild = machines_of(seed, FaultLevel::mild);
    EXPECT_FALSE(mild.any());
    clocked += mild.clocks.empty() ? 0 : 1;
    for (const LocalClock& clock : mild.clocks) EXPECT_LE(std::abs(clock.drift_millionths), 500);
  }
  EXPECT_NEAR(paused, kSeeds / 2, 60);
  EXPECT_NEAR(slow, kSeeds / 2, 60);
  EXPECT_NEAR(clocked, kSeeds / 2, 60);
}

TEST(FaultPlan, ANamedNetworkTakesThePlaceOfTheDrawnOne) {
  const ClusterOptions options{.faults = FaultLevel::mild, .preset = net_fake::Preset::wan};
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const FaultPlan plan = plan_of(seed, options);
    EXPECT_EQ(plan.link.delay.min(), std::chrono::milliseconds(30));
    EXPECT_EQ(plan.link.bytes_per_second, 125'000'000u);
  }
}

// Goal: whatever is drawn or named, a frame's delay is a small part of what makes a peer lost.
TEST(FaultPlan, NoDelayIsLongAgainstThePeerTimeout) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    KeyedDecisions decisions(Seed{seed}, {});
    const Duration peer_timeout = std::chrono::milliseconds(400);
    const FaultPlan plan = draw_faults(decisions, {}, 4, peer_timeout);
    for (const uint64_t draw : {uint64_t{0}, net_fake::Delay::kDraws - 1}) {
      EXPECT_LE(plan.link.delay.sample(draw), peer_timeout / 16);
      EXPECT_LE(plan.link.connect.sample(draw), peer_timeout / 16);
    }
  }
}

TEST(FaultClass, NamesAreReadBack) {
  for (const FaultClass fault : kFaultClasses) EXPECT_EQ(fault_class_named(name_of(fault)), fault);
  EXPECT_FALSE(fault_class_named("weather"));
}

}  // namespace
}  // namespace rehearsal::sim
