#include "command_line/hunt_sharing.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace rehearsal::command_line {
namespace {

RunOutcome outcome(uint64_t events, std::vector<uint32_t> features) {
  RunOutcome outcome;
  outcome.ok = true;
  outcome.decisions = {{"worker", events}};
  outcome.features = std::move(features);
  return outcome;
}

// How many of so many runs each way is given, where its nth run has this outcome.
std::vector<uint64_t> given(HuntSharing sharing, size_t ways, size_t tasks,
                            const std::function<RunOutcome(size_t way, uint64_t nth)>& run) {
  std::vector<uint64_t> runs(ways);
  for (size_t task = 0; task < tasks; ++task) {
    const auto [way, nth] = sharing.next(task);
    EXPECT_EQ(nth, runs[way]++);
    sharing.learn(task, run(way, nth));
  }
  return runs;
}

TEST(HuntSharing, AsLongAsNothingIsKnownAllWaysTakeTurns) {
  const auto runs = given(HuntSharing({"a", "b", "c"}), 3, Lagging<int>::kLag,
                          [](size_t, uint64_t) { return outcome(100, {}); });
  EXPECT_EQ(runs, (std::vector<uint64_t>{43, 43, 42}));
}

TEST(HuntSharing, MostGoesWhereMostIsNewAndSomeEverywhere) {
  // Goal: the shares of the header. Method: each run of one way shows something that no other run
  // shows, those of the other way always the same.
  const auto runs = given(HuntSharing({"new", "old"}), 2, 10'000, [](size_t way, uint64_t nth) {
    return outcome(100, {way == 0 ? static_cast<uint32_t>(100 + nth) : 7});
  });
  EXPECT_NEAR(runs[0], 8750, 100);
  EXPECT_NEAR(runs[1], 1250, 100);
}

TEST(HuntSharing, WhereNothingIsNewAnyMoreAllAreGivenTheSameEvents) {
  // Goal: runs are paid for by their events. Method: runs of 900 and of 100 events, and the 100
  // that each costs by itself.
  const auto runs = given(HuntSharing({"long", "short"}), 2, 12'000,
                          [](size_t way, uint64_t) { return outcome(way == 0 ? 900 : 100, {7}); });
  EXPECT_NEAR(runs[0], 2000, 100);
  EXPECT_NEAR(runs[1], 10'000, 100);
}

TEST(HuntSharing, OfEqualDiscoveriesTheCheaperOnesAreSought) {
  // A new feature each run, which costs 1000 events in one way and 200 in the other: five of six
  // parts of what is shared by discovery, beside an eighth for either.
  const auto runs = given(HuntSharing({"dear", "cheap"}), 2, 20'000, [](size_t way, uint64_t nth) {
    return outcome(way == 0 ? 900 : 100, {static_cast<uint32_t>(nth)});
  });
  EXPECT_NEAR(static_cast<double>(runs[1]) * 200 / (static_cast<double>(runs[0]) * 1000), 3, 0.2);
}

// The features that are to be expected of each way whose nth run shows the nth feature, as soon as
// something is known: both ways have had the same turns.
std::vector<double> expected_of(HuntSharing sharing) {
  for (size_t task = 0; task < 2 * Lagging<int>::kLag; ++task) {
    const auto [way, nth] = sharing.next(task);
    sharing.learn(task, outcome(100, {static_cast<uint32_t>(nth)}));
  }
  std::vector<double> expected;
  for (const HuntSharing::Row& row : sharing.rows()) expected.push_back(row.new_in_a_run);
  return expected;
}

TEST(HuntSharing, WaysOfOneScenarioDiscoverTheSameThings) {
  // Goal: a feature that another way has shown is not new, unless it is another scenario's.
  EXPECT_EQ(expected_of(HuntSharing({"a", "b"})), (std::vector<double>{1, 1}));
  for (const double expected : expected_of(HuntSharing({"a", "a"}))) EXPECT_LT(expected, 0.05);
}

TEST(HuntSharing, WhichWayARunIsGivenDoesNotDependOnWhatIsDoneEarly) {
  const auto run = [](size_t way, uint64_t nth) {
    return outcome(100 + 10 * way, {static_cast<uint32_t>(way == 1 ? nth : nth % 3)});
  };
  HuntSharing in_order({"a", "b", "c"});
  HuntSharing late({"a", "b", "c"});
  std::vector<std::pair<size_t, RunOutcome>> under_way;
  for (size_t task = 0; task < 3000; ++task) {
    const auto [way, nth] = in_order.next(task);
    in_order.learn(task, run(way, nth));
    while (!late.ready_for(task)) {
      late.learn(under_way.back().first, under_way.back().second);
      under_way.pop_back();
    }
    EXPECT_EQ(late.next(task).way, way);
    under_way.emplace_back(task, run(way, nth));
  }
}

}  // namespace
}  // namespace rehearsal::command_line
