#include "prefetch.h"

#include <gtest/gtest.h>
#include <rehearsal/sim/simulated_devices.h>

namespace prefetch {
namespace {

using namespace rehearsal;

testing::AssertionResult holds(Next next) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    sim::SimulatedDevices devices({.seed = seed});
    const std::vector<torch::Tensor> batches(5, torch::ones({100}).pin_memory());
    Prefetcher prefetcher(batches, torch::Device("sim:0"));
    const float sum = sum_of_squares(prefetcher, next, torch::Device("sim:0"));
    try {
      devices.check();
    } catch (const std::exception& error) {
      return testing::AssertionFailure() << "seed " << seed << ", " << sum << ": " << error.what();
    }
    if (sum != 500) return testing::AssertionFailure() << "seed " << seed << ": " << sum;
  }
  return testing::AssertionSuccess();
}

TEST(Prefetcher, AtOnce) { EXPECT_TRUE(holds(&Prefetcher::next_at_once)); }

TEST(Prefetcher, InOrder) { EXPECT_TRUE(holds(&Prefetcher::next_in_order)); }

TEST(Prefetcher, Holds) { EXPECT_TRUE(holds(&Prefetcher::next)); }

}  // namespace
}  // namespace prefetch
