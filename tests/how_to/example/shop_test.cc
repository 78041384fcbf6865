#include "shop.h"

#include <gtest/gtest.h>
#include <rehearsal/sim/cluster.h>
#include <rehearsal/sim/gtest.h>

namespace shop {
namespace {

using namespace rehearsal;

testing::AssertionResult hunt(const Program& program) {
  return sim::hunt({.seeds = 500, .cluster = {.faults = sim::FaultLevel::hostile}},
                   [&program](Seed seed, const sim::ClusterOptions& options) {
                     sim::Cluster cluster(seed, program, options);
                     cluster.run();
                   });
}

TEST(Shop, OrdersOnce) { EXPECT_TRUE(hunt(program(sell, deliver))); }

TEST(ShopInTurn, OrdersOnce) { EXPECT_TRUE(hunt(program(sell_in_turn, deliver))); }

TEST(ShopInTurn, OrdersWhatFits) { EXPECT_TRUE(hunt(program(sell_in_turn, deliver_what_fits))); }

}  // namespace
}  // namespace shop
