#include "sim/gtest.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "sim/cluster.h"
#include "tests/sim/adding_program.h"

namespace rehearsal::sim {
namespace {

TEST(HoldsForSeeds, AScenarioHoldsForTwoHundredSeeds) {
  const Program program = adding_program();
  EXPECT_TRUE(holds_for_seeds(200, [&program](Seed seed) {
    Cluster cluster(seed, program, {.faults = FaultLevel::hostile});
    cluster.run();
  }));
}

TEST(HoldsForSeeds, AFailureNamesItsSeedAndEndsWithTheLineThatRepeatsIt) {
  uint64_t runs = 0;
  const testing::AssertionResult result = holds_for_seeds(200, [&runs](Seed seed) {
    ++runs;
    if (seed.value == 17) throw std::runtime_error("wrong");
  });
  EXPECT_FALSE(result);
  EXPECT_EQ(runs, 17u);
  const std::string text = result.message();
  EXPECT_EQ(text.find("seed 17 failed, 17 tried: wrong\n"), 0u) << text;
  const std::string last = text.substr(text.find("REHEARSAL_RUN="));
  EXPECT_EQ(last.find("REHEARSAL_RUN='--seed 17' "), 0u) << last;
  EXPECT_TRUE(last.ends_with(
      " --gtest_filter=HoldsForSeeds.AFailureNamesItsSeedAndEndsWithTheLineThatRepeatsIt\n"))
      << last;
}

TEST(Hunt, GivesEverySeedItsStrategyAndTheOptionsOfTheTest) {
  // Goal: the portfolio, and what the test asked for beside it. Method: note what each run is
  // given; what URW and SURW have to know takes a run more.
  const Program program = adding_program();
  std::vector<uint64_t> seeds;
  EXPECT_TRUE(hunt({.seeds = 40, .first_seed = Seed{100}, .cluster = {.crashes = 2}},
                   [&](Seed seed, const ClusterOptions& options) {
                     Cluster(seed, program, options).run();
                     if (options.profile) return;
                     seeds.push_back(seed.value);
                     EXPECT_EQ(options.strategy.kind, portfolio_strategy(seed));
                     EXPECT_EQ(options.crashes, 2u);
                     EXPECT_TRUE(options.overrides.empty());
                   }));
  ASSERT_EQ(seeds.size(), 40u);
  EXPECT_EQ(seeds.front(), 100u);
  EXPECT_EQ(seeds.back(), 139u);
}

TEST(Hunt, AnExpectationThatFailsInTheSceneIsAFailureOfItsSeedAndOfNothingElse) {
  // Goal: the message has the place and the text of the expectation. Method: one seed expects
  // wrong.
  const Program program = adding_program();
  const testing::AssertionResult result =
      hunt({.seeds = 9}, [&program](Seed seed, const ClusterOptions& options) {
        Cluster(seed, program, options).run();
        EXPECT_NE(seed.value, 4u);
      });
  EXPECT_FALSE(result);
  EXPECT_FALSE(HasFailure());
  const std::string text = result.message();
  EXPECT_EQ(text.find("seed 4 failed, 4 tried: "), 0u) << text;
  EXPECT_NE(text.find("gtest_test.cc:"), std::string::npos) << text;
  EXPECT_NE(text.find("Expected: (seed.value) != (4u)"), std::string::npos) << text;
}

TEST(Hunt, ASceneThatMakesNoClusterWithItsOptionsFails) {
  // Goal: no search in which every run is the same. Method: a scene with options of its own.
  const Program program = adding_program();
  uint64_t runs = 0;
  const testing::AssertionResult result = hunt({}, [&](Seed seed, const ClusterOptions&) {
    ++runs;
    Cluster(seed, program, {}).run();
  });
  EXPECT_FALSE(result);
  EXPECT_EQ(runs, 1u);
  EXPECT_EQ(std::string(result.message()),
            "the scene made no cluster with the options that it was given, so that nothing was "
            "searched: give them to sim::Cluster, or use sim::holds_for_seeds");
}

// Has no end.
Program endless_program() {
  Program program{FunctionRegistry{}};
  program.worker("sleeper", [](Worker& worker) {
    while (true) worker.sleep(std::chrono::seconds(1));
  });
  return program;
}

ClusterOptions without_bounds() {
  return {.progress_bound = std::chrono::hours(100'000), .virtual_time_max = Duration::zero()};
}

TEST(Hunt, WhoseTimeIsUpGivesUpTheRunThatIsUnderWay) {
  // Goal: a hunt of some seconds takes some seconds, whatever its program does. Method: the third
  // run never ends.
  const Program holds = adding_program();
  const Program endless = endless_program();
  uint64_t seeds = 0;
  EXPECT_TRUE(hunt({.time = std::chrono::seconds(1),
                    .overtime = Duration::zero(),
                    .first_seed = Seed{1},
                    .strategy = StrategyKind::timed_swarm,
                    .cluster = without_bounds()},
                   [&](Seed seed, const ClusterOptions& options) {
                     ++seeds;
                     Cluster(seed, seed.value < 3 ? holds : endless, options).run();
                     EXPECT_LT(seed.value, 3u) << "a run that was given up has ended";
                   }));
  EXPECT_LE(seeds, 3u);
}

TEST(Hunt, InWhoseTimeNoRunEndsFails) {
  // Goal: a test never passes because nothing was tried to its end.
  const Program endless = endless_program();
  const testing::AssertionResult result = hunt(
      {.time = Duration::zero(),
       .overtime = Duration::zero(),
       .first_seed = Seed{5},
       .cluster = without_bounds()},
      [&](Seed seed, const ClusterOptions& options) { Cluster(seed, endless, options).run(); });
  EXPECT_FALSE(result);
  const std::string text = result.message();
  EXPECT_EQ(text.find("seed 5 failed, 1 tried: it had not ended when the time"), 0u) << text;
}

TEST(Hunt, TheTimeOfMakingSmallEndsInTheMiddleOfARun) {
  // Goal: a run that never ends, once it is made smaller, costs no more than the time given.
  // Method: a cluster that fails with its faults, and is endless without.
  const Program holds = adding_program();
  const Program endless = endless_program();
  const testing::AssertionResult result =
      hunt({.seeds = 1,
            .first_seed = Seed{1},
            .cluster = without_bounds(),
            .shrink_time = std::chrono::milliseconds(200)},
           [&](Seed seed, const ClusterOptions& options) {
             const bool whole = options.faults != FaultLevel::none && options.without.empty() &&
                                options.otherwise == Otherwise::drawn;
             Cluster(seed, whole ? holds : endless, options).run();
             throw std::runtime_error("it fails");
           });
  EXPECT_FALSE(result);
  EXPECT_NE(std::string(result.message()).find("it fails"), std::string::npos);
}

}  // namespace
}  // namespace rehearsal::sim
