#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "sim/decisions/keyed_decisions.h"
#include "sim/strategies/strategies.h"
#include "tests/sim/strategies/chain_program.h"

namespace rehearsal::sim {
namespace {

using Skips = std::vector<uint64_t>;

// A strategy that also notes how many events each of its choices was of.
class Measured final : public Strategy {
 public:
  explicit Measured(Strategy& inner) : inner_(inner) {}
  size_t pick(const std::vector<Enabled>& enabled) override {
    widths.push_back(static_cast<uint8_t>(enabled.size()));
    places.push_back(inner_.pick(enabled));
    return places.back();
  }
  void happened(const net_fake::Chain& chain) override { inner_.happened(chain); }

  std::vector<uint8_t> widths;
  std::vector<size_t> places;

 private:
  Strategy& inner_;
};

struct Scheduled {
  Order order;
  std::vector<uint8_t> widths;
};

Scheduled run_with(const Chains& program, const Skips& skips) {
  KeyedDecisions decisions(Seed{1}, {});
  StrategySettings settings(StrategyKind::delays);
  settings.skips = skips;
  settings.bound = 0;
  Delays delays(decisions, settings);
  Measured measured(delays);
  Order order = run(program, measured);
  return {std::move(order), std::move(measured.widths)};
}

// The orders with at most so many deviations, each as often as the enumeration comes to it.
std::multiset<Order> enumerate(const Chains& program, uint64_t bound) {
  std::multiset<Order> orders;
  std::vector<Skips> level = {{}};
  for (uint64_t deviations = 0; deviations <= bound; ++deviations) {
    std::vector<Skips> next;
    for (const Skips& skips : level) {
      const Scheduled run = run_with(program, skips);
      orders.insert(run.order);
      for (Skips& more : one_deviation_more(skips, run.widths)) next.push_back(std::move(more));
    }
    level = std::move(next);
  }
  return orders;
}

// Takes given chains, and so tells how many events were passed over.
class Given final : public Strategy {
 public:
  explicit Given(Order order) : order_(std::move(order)) {}
  size_t pick(const std::vector<Enabled>& enabled) override {
    size_t place = 0;
    while (enabled[place].chain.first != order_[next_]) ++place;
    return place;
  }
  void happened(const net_fake::Chain&) override { ++next_; }

 private:
  Order order_;
  size_t next_ = 0;
};

uint64_t deviations_of(const Chains& program, const Order& order) {
  Given given(order);
  Measured measured(given);
  EXPECT_EQ(run(program, measured), order);
  uint64_t sum = 0;
  for (const size_t place : measured.places) sum += place;
  return sum;
}

TEST(DelayBound, EveryOrderWithinTheBoundIsTriedOnceAndNoOther) {
  // Method: brute force over all orders of small programs.
  for (const Chains& program : {Chains{2, 2}, Chains{3, 2}, Chains{2, 2, 2}, Chains{1, 1, 1, 1}}) {
    for (uint64_t bound = 0; bound <= 4; ++bound) {
      std::multiset<Order> expected;
      for (const Order& order : all_orders(program))
        if (deviations_of(program, order) <= bound) expected.insert(order);
      EXPECT_EQ(enumerate(program, bound), expected) << program.size() << " chains, " << bound;
    }
  }
}

TEST(DelayBound, OfChoicesBetweenTwoItTriesAsManyAsThereAreSetsOfSteps) {
  // Method: k choices of two events each, whatever was chosen before: Σ C(k, i).
  constexpr uint64_t kChoices = 12;
  const std::vector<uint8_t> widths(kChoices, 2);
  std::vector<Skips> level = {{}};
  uint64_t binomial = 1;
  for (uint64_t i = 0; i <= 4; ++i) {
    EXPECT_EQ(level.size(), binomial) << i;
    binomial = binomial * (kChoices - i) / (i + 1);
    std::vector<Skips> next;
    for (const Skips& skips : level)
      for (Skips& more : one_deviation_more(skips, widths)) next.push_back(std::move(more));
    level = std::move(next);
  }
}

}  // namespace
}  // namespace rehearsal::sim
