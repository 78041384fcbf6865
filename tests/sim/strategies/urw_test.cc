#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "sim/decisions/keyed_decisions.h"
#include "sim/strategies/strategies.h"
#include "tests/sim/strategies/chain_program.h"

namespace rehearsal::sim {
namespace {

constexpr uint64_t kRunsOfEach = 400;  // of each order, on average

std::vector<ChainCount> counts_of(const Chains& program) {
  std::vector<ChainCount> counts;
  for (uint32_t chain = 0; chain < program.size(); ++chain)
    counts.push_back({.chain = lane(chain), .events = program[chain], .parent = std::nullopt});
  return counts;
}

// Pearson's statistic of these counts against a uniform distribution over `kinds` outcomes.
double chi_squared(const std::map<Order, uint64_t>& seen, size_t kinds) {
  const auto expected = static_cast<double>(kRunsOfEach);
  double sum = 0;
  for (const auto& [order, count] : seen) {
    const double off = static_cast<double>(count) - expected;
    sum += off * off / expected;
  }
  return sum + static_cast<double>(kinds - seen.size()) * expected;
}

// The limit that a uniform choice exceeds only once in a thousand times (Wilson and Hilferty).
double chi_squared_limit(size_t kinds) {
  const auto freedom = static_cast<double>(kinds - 1);
  const double root = 1 - 2 / (9 * freedom) + 3.09 * std::sqrt(2 / (9 * freedom));
  return freedom * root * root * root;
}

template <class Make>
double chi_squared_of(const Chains& program, const Make& make) {
  const size_t kinds = all_orders(program).size();
  std::map<Order, uint64_t> seen;
  for (uint64_t seed = 1; seed <= kinds * kRunsOfEach; ++seed) {
    KeyedDecisions decisions(Seed{seed}, {});
    const auto strategy = make(decisions);
    ++seen[run(program, *strategy)];
  }
  return chi_squared(seen, kinds);
}

class Uniformity : public testing::TestWithParam<Chains> {};

TEST_P(Uniformity, UrwTakesEveryInterleavingEquallyOften) {
  const Chains program = GetParam();
  const double limit = chi_squared_limit(all_orders(program).size());
  EXPECT_LT(chi_squared_of(program,
                           [&](KeyedDecisions& decisions) {
                             return std::make_unique<Urw>(decisions, counts_of(program));
                           }),
            limit);
}

TEST_P(Uniformity, ARandomWalkAndPosDoNot) {
  // Goal: the test above can fail. Method: the same for strategies that are not uniform.
  const Chains program = GetParam();
  const double limit = chi_squared_limit(all_orders(program).size());
  EXPECT_GT(chi_squared_of(program, [](auto& all) { return std::make_unique<RandomWalk>(all); }),
            2 * limit);
  EXPECT_GT(chi_squared_of(program, [](auto& all) { return std::make_unique<Pos>(all); }),
            2 * limit);
}

INSTANTIATE_TEST_SUITE_P(SmallPrograms, Uniformity,
                         testing::Values(Chains{2, 2}, Chains{3, 2}, Chains{2, 2, 2},
                                         Chains{1, 1, 3}));

// Chain 0 has two events, the first of which makes chain 1; chain 2 is there from the start.
Order run_with_a_child(Strategy& strategy) {
  return run({2, 0, 2}, strategy, [](uint32_t chain, Chains& left) {
    if (chain == 0 && left[0] == 1) left[1] = 3;
  });
}

double chi_squared_with_a_child(const std::vector<ChainCount>& counts) {
  size_t kinds = 0;  // orders in which chain 0 comes before chain 1
  for (const Order& order : all_orders({2, 3, 2}))
    if (std::find(order.begin(), order.end(), 0u) < std::find(order.begin(), order.end(), 1u))
      ++kinds;
  std::map<Order, uint64_t> seen;
  for (uint64_t seed = 1; seed <= kinds * kRunsOfEach; ++seed) {
    KeyedDecisions decisions(Seed{seed}, {});
    Urw urw(decisions, counts);
    ++seen[run_with_a_child(urw)];
  }
  EXPECT_EQ(seen.size(), kinds);
  return chi_squared(seen, kinds) / chi_squared_limit(kinds);
}

TEST(Urw, AChainThatAnotherMakesCountsAsPartOfIt) {
  // Goal: uniform where chains come up on the way, and only if it is known who makes them.
  std::vector<ChainCount> counts = counts_of({2, 3, 2});
  EXPECT_GT(chi_squared_with_a_child(counts), 2);
  counts[1].parent = lane(0);
  EXPECT_LT(chi_squared_with_a_child(counts), 1);
}

TEST(Urw, BenignChoicesKeepTheOrderOfInstants) {
  KeyedDecisions decisions(Seed{1}, {}, Otherwise::benign);
  Urw urw(decisions, {});
  EXPECT_EQ(run({2, 2}, urw), (Order{0, 0, 1, 1}));
}

// Two senders to worker 0 with two frames each, and a stack with four events that race with them.
constexpr net_fake::Chain kStack{net_fake::Chain::Kind::stack, 9, 0};

Order run_arrivals(Strategy& strategy) {
  std::map<net_fake::Chain, uint32_t> left = {{lane(1), 2}, {lane(2), 2}, {kStack, 4}};
  Order order;
  while (true) {
    std::vector<Enabled> enabled;
    for (const auto& [chain, count] : left)
      if (count > 0) enabled.push_back({.chain = chain, .worker = WorkerId{0}, .when = {}});
    if (enabled.empty()) return order;
    const size_t place = enabled.size() > 1 ? strategy.pick(enabled) : 0;
    const net_fake::Chain chain = enabled[place].chain;
    strategy.happened(chain);
    --left[chain];
    if (chain != kStack) order.push_back(chain.first);
  }
}

double chi_squared_of_arrivals(
    const std::function<std::unique_ptr<Strategy>(KeyedDecisions&)>& make) {
  std::map<Order, uint64_t> seen;
  for (uint64_t seed = 1; seed <= 6 * kRunsOfEach; ++seed) {
    KeyedDecisions decisions(Seed{seed}, {});
    ++seen[run_arrivals(*make(decisions))];
  }
  return chi_squared(seen, 6) / chi_squared_limit(6);
}

TEST(Surw, IsUniformOverWhatArrivesAtOneWorker) {
  const std::vector<ChainCount> counts = {{.chain = lane(1), .events = 2, .parent = std::nullopt},
                                          {.chain = lane(2), .events = 2, .parent = std::nullopt},
                                          {.chain = kStack, .events = 4, .parent = std::nullopt}};
  EXPECT_LT(chi_squared_of_arrivals(
                [&](KeyedDecisions& all) { return std::make_unique<Surw>(all, counts); }),
            1);
  EXPECT_GT(chi_squared_of_arrivals(
                [](KeyedDecisions& all) { return std::make_unique<RandomWalk>(all); }),
            2);
}

TEST(Surw, DrawsAnewWhenWhatItIntendedNeverComes) {
  // Goal: no chain waits for ever. Method: the earlier run had many frames on a lane that is
  // silent.
  const std::vector<ChainCount> counts = {
      {.chain = lane(7), .events = 1000, .parent = std::nullopt},
      {.chain = lane(0), .events = 2, .parent = std::nullopt}};
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    KeyedDecisions decisions(Seed{seed}, {});
    Surw surw(decisions, counts);
    EXPECT_EQ(run({3, 4}, surw).size(), 7u);
  }
}

}  // namespace
}  // namespace rehearsal::sim
