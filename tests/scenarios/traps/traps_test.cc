#include "scenarios/traps/traps.h"

#include <gtest/gtest.h>

#include "tests/scenarios/simulated.h"

namespace rehearsal {
namespace {

TEST(Traps, EachWayGivesTheGradientsOfOneProcessOrNamesTheCallThatLostThem) {
  // Goal: no form of call, anywhere, loses a gradient in silence. Method: the scenario compares
  // each and steps into each trap itself; a calm run, and 25 seeds as hostile as it gets.
  const SimulatedRun calm = simulated(traps::scenario(), 1, sim::FaultLevel::none);
  ASSERT_TRUE(calm.outcome.ok) << failure_text(calm.outcome);
  EXPECT_EQ(calm.outcome.results.numbers().at("gradients compared"), 4 * 38);
  EXPECT_EQ(calm.outcome.results.numbers().at("losses told"), 18);
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    const SimulatedRun run = simulated(traps::scenario(), seed, sim::FaultLevel::hostile);
    ASSERT_TRUE(run.outcome.ok) << seed << ": " << failure_text(run.outcome);
    EXPECT_EQ(run.outcome.results.digest(), calm.outcome.results.digest()) << seed;
  }
}

}  // namespace
}  // namespace rehearsal
