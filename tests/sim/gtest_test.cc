#include "sim/gtest.h"

#include <gtest/gtest.h>

#include <stdexcept>

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
  if (GTEST_FLAG_GET(random_seed) != 0) GTEST_SKIP() << "only one seed is asked for";
  uint64_t runs = 0;
  const testing::AssertionResult result = holds_for_seeds(200, [&runs](Seed seed) {
    ++runs;
    if (seed.value == 17) throw std::runtime_error("wrong");
  });
  EXPECT_FALSE(result);
  EXPECT_EQ(runs, 17u);
  const std::string text = result.message();
  EXPECT_EQ(text.find("seed 17: wrong\n"), 0u) << text;
  const std::string last = text.substr(text.rfind('\n') + 1);
  EXPECT_NE(last.find("--gtest_filter=HoldsForSeeds.AFailureNames"), std::string::npos) << last;
  EXPECT_NE(last.find("--gtest_random_seed=17"), std::string::npos) << last;
}

TEST(HoldsForSeeds, OneSeedIsRunAloneWhenItIsAskedFor) {
  const auto before = GTEST_FLAG_GET(random_seed);
  GTEST_FLAG_SET(random_seed, 42);
  std::vector<uint64_t> seeds;
  EXPECT_TRUE(holds_for_seeds(200, [&seeds](Seed seed) { seeds.push_back(seed.value); }));
  GTEST_FLAG_SET(random_seed, before);
  EXPECT_EQ(seeds, std::vector<uint64_t>{42});
}

}  // namespace
}  // namespace rehearsal::sim
