#include "sim/explore/dpor.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/sim/explore/brute_force.h"
#include "tests/sim/explore/toy_program.h"

namespace rehearsal::sim::explore {
namespace {

using Kind = Transition::Kind;

struct Classes {
  std::set<std::string> classes;
  uint64_t schedules = 0;  // to the end
};

template <class Search>
Classes explore_all(const ToyProgram& program) {
  Classes explored;
  Search search;
  while (search.begin_run()) {
    const std::string order = program.run(search);
    if (!order.empty()) explored.classes.insert(order);
    search.end_run();
  }
  explored.schedules = search.schedules();
  return explored;
}

// Workers that each push messages to node 0.
ToyProgram pushes(uint32_t workers, int each) {
  ToyProgram program;
  for (uint32_t worker = 1; worker <= workers; ++worker)
    for (int i = 0; i < each; ++i) program.at_start[worker].push_back({0, i});
  return program;
}

TEST(Dpor, VisitsAsManySchedulesAsThereAreOrdersOfPushesToOneServer) {
  // (W·m)! / (m!)^W of W workers with m pushes each.
  EXPECT_EQ(explore_all<Dpor>(pushes(2, 2)).schedules, 6U);
  EXPECT_EQ(explore_all<Dpor>(pushes(3, 2)).schedules, 90U);
  EXPECT_EQ(explore_all<Dpor>(pushes(4, 2)).schedules, 2520U);
  EXPECT_EQ(explore_all<Dpor>(pushes(3, 3)).schedules, 1680U);
}

TEST(Dpor, RunsMessagesToDifferentNodesInOneOrderOnly) {
  // Two nodes send to two others each: of 4! orders of the four deliveries, 2 · 2 differ.
  ToyProgram program;
  program.at_start[0] = {{2, 1}, {3, 1}};
  program.at_start[1] = {{2, 2}, {3, 2}};
  EXPECT_EQ(explore_all<BruteForce>(program).schedules, 24U);
  EXPECT_EQ(explore_all<Dpor>(program).schedules, 4U);
}

TEST(Dpor, RunsARingOnce) {
  ToyProgram program;
  for (uint32_t node = 0; node < 4; ++node) {
    program.at_start[node] = {{(node + 1) % 4, 1}};
  }
  EXPECT_EQ(explore_all<Dpor>(program).schedules, 1U);
}

TEST(Dpor, TriesEveryLossOfAFrameThatACutCanCause) {
  // Two frames to node 1 and a cut: 0, 1 or 2 have arrived; of those on their way any suffix is
  // lost, and what is not lost arrives behind the cut.
  ToyProgram program;
  program.at_start[0] = {{1, 1}, {1, 2}};
  program.faults = {{Kind::cut, 0, 1}};
  const Classes brute = explore_all<BruteForce>(program);
  EXPECT_EQ(brute.classes.size(), 6U);
  EXPECT_EQ(explore_all<Dpor>(program).classes, brute.classes);
}

// Each class of equivalent schedules once, and none left out: compared with all schedules.
TEST(Dpor, AgreesWithBruteForceOnRandomPrograms) {
  uint64_t with_faults = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    const ToyProgram program = random_toy_program(seed);
    const Classes brute = explore_all<BruteForce>(program);
    const Classes reduced = explore_all<Dpor>(program);
    ASSERT_EQ(reduced.classes, brute.classes) << "seed " << seed;
    ASSERT_EQ(reduced.schedules, reduced.classes.size()) << "seed " << seed;
    with_faults += program.faults.size();
  }
  EXPECT_GT(with_faults, 1000U);
}

}  // namespace
}  // namespace rehearsal::sim::explore
