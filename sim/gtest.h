#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <string>

#include "core/base/ids.h"

namespace rehearsal::sim {

// For a user's own test: a scenario holds for seeds 1 … `seeds`.
//
//   EXPECT_TRUE(sim::holds_for_seeds(200, [&](Seed seed) {
//     sim::Cluster cluster(seed, program);
//     cluster.run();
//   }));
//
// The scenario fails by throwing, as Cluster::run does, or by a failed expectation. The message
// ends with the command line that runs the failing seed alone: with GoogleTest's own flag
// --gtest_random_seed=N (and without --gtest_shuffle) only seed N is run.
[[nodiscard]] inline testing::AssertionResult holds_for_seeds(
    uint64_t seeds, const std::function<void(Seed)>& scenario) {
  const bool chosen = !GTEST_FLAG_GET(shuffle) && GTEST_FLAG_GET(random_seed) > 0;
  const uint64_t first = chosen ? static_cast<uint64_t>(GTEST_FLAG_GET(random_seed)) : 1;
  const uint64_t last = chosen ? first : seeds;
  for (uint64_t seed = first; seed <= last; ++seed) {
    std::string why;
    try {
      scenario(Seed{seed});
      if (!testing::Test::HasFailure()) continue;
      why = "an expectation failed";
    } catch (const std::exception& error) {
      why = error.what();
    }
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    const std::string name =
        test == nullptr ? "*" : std::string(test->test_suite_name()) + "." + test->name();
    const auto& arguments = testing::internal::GetArgvs();
    return testing::AssertionFailure()
           << "seed " << seed << ": " << why << "\nrun this seed alone with:\n"
           << (arguments.empty() ? "" : arguments.front()) << " --gtest_filter=" << name
           << " --gtest_random_seed=" << seed;
  }
  return testing::AssertionSuccess();
}

}  // namespace rehearsal::sim
