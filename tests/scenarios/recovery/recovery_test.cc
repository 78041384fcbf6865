#include "scenarios/recovery/recovery.h"

#include <gtest/gtest.h>

#include <string>

#include "scenarios/recovery/layers.h"
#include "tests/scenarios/simulated.h"

namespace rehearsal::recovery {
namespace {

// A run in which so many workers crash, of which all come back, with their disks or without.
SimulatedRun crashing(uint64_t seed, int crashes, sim::Restart restarts,
                      const std::vector<std::string>& assignments) {
  return simulated_by(
      command_line::shipped_backends(), scenario(), seed,
      ScenarioFaults{.faults = sim::FaultLevel::mild, .crashes = crashes, .restarts = restarts},
      assignments);
}

TEST(Recovery, TrainsThroughTenCrashesOfAnybodyToTheSameBits) {
  // Goal: a cluster that never rests trains as one process does. Method: ten crashes in a training
  // of 60 steps; in another, ten that take the disks with them.
  int went_on = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const SimulatedRun run =
        crashing(seed, 10, sim::Restart::checkpoint, {"steps=60", "save_every=5"});
    ASSERT_TRUE(run.outcome.ok) << seed << ": " << failure_text(run.outcome);
    ASSERT_EQ(run.outcome.results.numbers().count("bits of one process"), 1u) << seed;
    EXPECT_EQ(run.outcome.results.numbers().at("bits of one process"), 1) << seed;
    for (const std::string& line : run.lines)
      if (line.find(" goes on from step ") != std::string::npos) ++went_on;
  }
  EXPECT_GT(went_on, 40);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const SimulatedRun run = crashing(seed, 10, sim::Restart::amnesia, {"steps=20", "trainers=3"});
    ASSERT_TRUE(run.outcome.ok) << seed << ": " << failure_text(run.outcome);
    ASSERT_EQ(run.outcome.results.numbers().count("bits of one process"), 1u) << seed;
    EXPECT_EQ(run.outcome.results.numbers().at("bits of one process"), 1) << seed;
  }
}

TEST(Recovery, ItsOracleSeesAnotherResult) {
  // Goal: the verdict can fail. Method: results that say so; and the twin of other data differs.
  Results results;
  results.number("bits of one process", 0);
  EXPECT_TRUE(scenario().verdict(results, {}));
  const auto one = trained_alone(1, 4, 2);
  EXPECT_FALSE(one[0].equal(trained_alone(2, 4, 2)[0]));
  EXPECT_FALSE(one[0].equal(trained_alone(1, 5, 2)[0]));
  EXPECT_FALSE(one[0].equal(trained_alone(1, 4, 1)[0]));
}

}  // namespace
}  // namespace rehearsal::recovery
