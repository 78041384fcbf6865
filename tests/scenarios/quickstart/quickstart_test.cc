#include "scenarios/quickstart/quickstart.h"

#include <gtest/gtest.h>

#include "tests/scenarios/simulated.h"

namespace rehearsal::quickstart {
namespace {

TEST(Quickstart, LearnsAndKeepsItsBitsUnderFaults) {
  // Goal: the example of the README does what it says. Method: the loss falls; faults change no
  // bit.
  const Scenario quickstart = scenario();
  const auto calm = simulated(quickstart, 1, sim::FaultLevel::none, {"size=full"});
  ASSERT_TRUE(calm.outcome.ok) << failure_text(calm.outcome);
  const auto& numbers = calm.outcome.results.numbers();
  EXPECT_LT(numbers.at("last_loss"), 0.7 * numbers.at("first_loss"));
  const auto hostile = simulated(quickstart, 1, sim::FaultLevel::hostile, {"size=full"});
  ASSERT_TRUE(hostile.outcome.ok) << failure_text(hostile.outcome);
  EXPECT_EQ(hostile.outcome.results.digest(), calm.outcome.results.digest());
}

}  // namespace
}  // namespace rehearsal::quickstart
