#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "sim/decisions/keyed_decisions.h"
#include "sim/strategies/strategies.h"
#include "tests/sim/strategies/scripted_decisions.h"

namespace rehearsal::sim {
namespace {

using net_fake::Chain;
using net_fake::DecisionKind;

std::vector<Enabled> three_events(uint64_t first_serial) {
  std::vector<Enabled> enabled;
  for (uint32_t i = 0; i < 3; ++i)
    enabled.push_back({.chain = {Chain::Kind::stack, i, 0},
                       .worker = WorkerId{i / 2},
                       .when = {},
                       .serial = first_serial + i});
  return enabled;
}

TEST(RandomWalk, TakesEachPlaceEquallyOften) {
  KeyedDecisions decisions(Seed{1}, {});
  RandomWalk walk(decisions);
  std::map<size_t, int> counts;
  for (uint64_t step = 0; step < 30'000; ++step) ++counts[walk.pick(three_events(3 * step))];
  ASSERT_EQ(counts.size(), 3u);
  // Six standard deviations of a binomial count of 10,000.
  for (const auto& [place, count] : counts) EXPECT_NEAR(count, 10'000, 490) << place;
}

TEST(Pos, RacingEventsDrawTheirPrioritiesAnewAndOthersKeepThem) {
  // Events 1 and 2 belong to worker 0, event 3 to worker 1. Event 1 goes first; then event 2 races
  // with it and event 3 does not.
  std::vector<net_fake::Key> asked;
  ScriptedDecisions decisions([&asked](const net_fake::Key& key, uint64_t) {
    asked.push_back(key);
    return 100 - key.number;
  });
  Pos pos(decisions);
  std::vector<Enabled> enabled = three_events(1);
  ASSERT_EQ(pos.pick(enabled), 0u);
  enabled.erase(enabled.begin());
  asked.clear();
  EXPECT_EQ(pos.pick(enabled), 0u);
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0].number, 2u);
  EXPECT_EQ(asked[0].occurrence, 1u);
  EXPECT_EQ(asked[1].number, 3u);
  EXPECT_EQ(asked[1].occurrence, 0u);
}

TEST(Delays, DeviatesFromTheOrderOfInstantsTwiceAtMost) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    KeyedDecisions decisions(Seed{seed}, {});
    Delays delays(decisions, StrategyKind::delays);
    uint64_t deviations = 0;
    for (uint64_t step = 0; step < 40'000; ++step) deviations += delays.pick(three_events(1));
    seen.insert(deviations);
  }
  EXPECT_EQ(seen, (std::set<uint64_t>{1, 2}));
}

TEST(Delays, GivenStepsAreSkippedAndNothingElse) {
  KeyedDecisions decisions(Seed{1}, {});
  StrategySettings settings(StrategyKind::delays);
  settings.skips = {2, 4, 4};
  Delays delays(decisions, settings);
  std::vector<size_t> places;
  for (uint64_t step = 0; step < 6; ++step) places.push_back(delays.pick(three_events(1)));
  EXPECT_EQ(places, (std::vector<size_t>{0, 1, 0, 2, 0, 0}));
  EXPECT_EQ(decisions.draws(), 0u);
}

TEST(Delays, OfNoDeviationsKeepsTheOrderOfInstants) {
  KeyedDecisions decisions(Seed{1}, {});
  StrategySettings settings(StrategyKind::delays);
  settings.bound = 0;
  Delays delays(decisions, settings);
  for (uint64_t step = 0; step < 20'000; ++step) ASSERT_EQ(delays.pick(three_events(1)), 0u);
}

TEST(Portfolio, GivesEachStrategyItsShare) {
  // Goal: the shares of the README, within six standard deviations.
  std::map<StrategyKind, int> seeds;
  int guided = 0;
  for (uint64_t seed = 1; seed <= 40'000; ++seed) {
    ++seeds[portfolio_strategy(Seed{seed})];
    if (!portfolio_guides(Seed{seed})) continue;
    ++guided;
    EXPECT_EQ(portfolio_strategy(Seed{seed}), StrategyKind::timed_swarm);
  }
  EXPECT_NEAR(guided, 4'000, 360);
  EXPECT_NEAR(seeds[StrategyKind::timed_swarm], 18'000, 600);
  EXPECT_NEAR(seeds[StrategyKind::pct], 10'000, 520);
  EXPECT_NEAR(seeds[StrategyKind::random_walk], 6'000, 430);
  EXPECT_NEAR(seeds[StrategyKind::pos], 4'000, 360);
  EXPECT_NEAR(seeds[StrategyKind::urw], 1'000, 190);
  EXPECT_NEAR(seeds[StrategyKind::surw], 1'000, 190);
  EXPECT_EQ(seeds[StrategyKind::delays], 0);
}

TEST(Strategies, AreKnownByTheirNames) {
  for (const StrategyKind kind : kStrategyKinds) EXPECT_EQ(strategy_named(name_of(kind)), kind);
  EXPECT_EQ(strategy_named("best"), std::nullopt);
}

}  // namespace
}  // namespace rehearsal::sim
