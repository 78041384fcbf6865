#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/strategies/strategies.h"
#include "tests/sim/strategies/chain_program.h"
#include "tests/sim/strategies/scripted_decisions.h"

namespace rehearsal::sim {
namespace {

uint64_t choices_of(Chains left, const Order& order) {
  uint64_t choices = 0;
  for (const uint32_t chain : order) {
    choices += enabled_of(left).size() > 1 ? 1 : 0;
    --left[chain];
  }
  return choices;
}

// Where each event stands: the n-th event of a chain is `first event of the chain + n`.
std::vector<size_t> positions(const Chains& program, const Order& order) {
  std::vector<size_t> next(program.size(), 0);
  std::exclusive_scan(program.begin(), program.end(), next.begin(), size_t{0});
  std::vector<size_t> result(order.size());
  for (size_t i = 0; i < order.size(); ++i) result[next[order[i]]++] = i;
  return result;
}

struct Constraint {
  size_t before = 0;
  size_t after = 0;
};

std::vector<Constraint> constraints_between_chains(const Chains& program) {
  std::vector<uint32_t> chain_of;
  for (uint32_t chain = 0; chain < program.size(); ++chain)
    chain_of.insert(chain_of.end(), program[chain], chain);
  std::vector<Constraint> all;
  for (size_t one = 0; one < chain_of.size(); ++one)
    for (size_t other = 0; other < chain_of.size(); ++other)
      if (chain_of[one] != chain_of[other]) all.push_back({one, other});
  return all;
}

// Calls `body` with every set of `size` of the constraints, as a bit for each.
void for_each_set(size_t constraints, size_t size, const std::function<void(uint64_t)>& body) {
  std::vector<bool> chosen(constraints, false);
  std::fill(chosen.begin(), chosen.begin() + static_cast<ptrdiff_t>(size), true);
  do {
    uint64_t set = 0;
    for (size_t i = 0; i < constraints; ++i) set |= uint64_t{chosen[i]} << i;
    body(set);
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
}

uint64_t satisfied(const std::vector<Constraint>& constraints, const std::vector<size_t>& places) {
  uint64_t set = 0;
  for (size_t i = 0; i < constraints.size(); ++i)
    set |= uint64_t{places[constraints[i].before] < places[constraints[i].after]} << i;
  return set;
}

// The orders that Pct gives for every ranking of the chains and every placing of d − 1 change
// points.
std::vector<Order> all_pct_orders(const Chains& program, uint64_t depth, uint64_t length) {
  std::vector<uint64_t> ranks(program.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<Order> orders;
  do {
    ScriptedDecisions decisions(
        [&ranks](const net_fake::Key& key, uint64_t) { return ranks[key.subject.worker.value]; });
    std::vector<uint64_t> points(depth - 1, 1);
    while (true) {
      Pct pct(decisions, points, length);
      orders.push_back(run(program, pct));
      size_t i = 0;
      while (i < points.size() && points[i] == length) points[i++] = 1;
      if (i == points.size()) break;
      ++points[i];
    }
  } while (std::next_permutation(ranks.begin(), ranks.end()));
  return orders;
}

class PctBound : public testing::TestWithParam<Chains> {};

TEST_P(PctBound, EverySatisfiableSetOfConstraintsIsFoundOftenEnough) {
  // Goal: the theorem, 1 / (w · k^(d−1)). Method: all rankings and change points of small programs,
  // against all sets of d constraints that some order satisfies.
  const Chains program = GetParam();
  const std::vector<Constraint> constraints = constraints_between_chains(program);
  ASSERT_LE(constraints.size(), 64u);
  std::vector<uint64_t> possible;
  uint64_t length = 0;
  for (const Order& order : all_orders(program)) {
    possible.push_back(satisfied(constraints, positions(program, order)));
    length = std::max(length, choices_of(program, order));
  }
  for (uint64_t depth = 1; depth <= 3; ++depth) {
    std::vector<uint64_t> found;
    for (const Order& order : all_pct_orders(program, depth, length))
      found.push_back(satisfied(constraints, positions(program, order)));
    uint64_t bound = program.size();
    for (uint64_t i = 1; i < depth; ++i) bound *= length;
    uint64_t sets = 0;
    for_each_set(constraints.size(), depth, [&](uint64_t set) {
      const auto holds = [set](uint64_t order) { return (order & set) == set; };
      if (std::none_of(possible.begin(), possible.end(), holds)) return;
      ++sets;
      const auto hits = static_cast<uint64_t>(std::count_if(found.begin(), found.end(), holds));
      EXPECT_GE(hits * bound, found.size()) << "depth " << depth << ", set " << std::hex << set;
    });
    EXPECT_GT(sets, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(SmallPrograms, PctBound,
                         testing::Values(Chains{2, 2, 1}, Chains{2, 2, 2}, Chains{3, 2, 2}));

TEST(Pct, AChainFallsBeforeItIsTaken) {
  // Chain 1 ranks highest; at the first step it falls, and chain 0 goes before it.
  ScriptedDecisions decisions(
      [](const net_fake::Key& key, uint64_t) { return uint64_t{key.subject.worker.value}; });
  Pct undisturbed(decisions, {}, 10);
  EXPECT_EQ(run({2, 2}, undisturbed), (Order{1, 1, 0, 0}));
  Pct pct(decisions, {1}, 10);
  EXPECT_EQ(run({2, 2}, pct), (Order{0, 0, 1, 1}));
  Pct later(decisions, {2}, 10);
  EXPECT_EQ(run({2, 2}, later), (Order{1, 0, 0, 1}));
}

TEST(Pct, AfterTenTimesItsLengthItIsFair) {
  // Goal: nothing starves for ever. Method: the fair choice always takes the second of two chains.
  ScriptedDecisions decisions([](const net_fake::Key& key, uint64_t) {
    return key.kind == net_fake::DecisionKind::pick ? 1u : 1u - key.subject.worker.value;
  });
  Pct pct(decisions, {}, 2);
  const Order order = run({100, 5}, pct);
  EXPECT_EQ(Order(order.begin(), order.begin() + 20), Order(20, 0));
  EXPECT_EQ(Order(order.begin() + 20, order.begin() + 25), Order(5, 1));
}

}  // namespace
}  // namespace rehearsal::sim
