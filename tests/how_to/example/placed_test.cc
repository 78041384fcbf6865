#include "placed.h"

#include <gtest/gtest.h>
#include <rehearsal/sim/cluster.h>
#include <rehearsal/sim/gtest.h>

namespace placed {
namespace {

using namespace rehearsal;

testing::AssertionResult hunt(const Program& program) {
  return sim::hunt({.seeds = 100, .cluster = {.devices = 2}},
                   [&program](Seed seed, const sim::ClusterOptions& options) {
                     sim::Cluster cluster(seed, program, options);
                     cluster.run();
                   });
}

TEST(Placed, AtOnce) { EXPECT_TRUE(hunt(program(&Table::rows_at_once))); }

TEST(Placed, InOrder) { EXPECT_TRUE(hunt(program(&Table::rows))); }

}  // namespace
}  // namespace placed
