// Your test: the whole cluster in this process, on a network that does what networks do.
#include "training.h"

#include <gtest/gtest.h>

#include "sim/cluster.h"
#include "sim/gtest.h"

namespace training {
namespace {

using namespace rehearsal;

testing::AssertionResult hunt(const Program& program) {
  return sim::hunt({.seeds = 500, .cluster = {.faults = sim::FaultLevel::hostile}},
                   [&program](Seed seed, const sim::ClusterOptions& options) {
                     sim::Cluster cluster(seed, program, options);
                     cluster.run();
                   });
}

TEST(Training, HoldsInOneRun) {
  const Program with_trainer = program(trainer);
  sim::Cluster cluster(Seed{1}, with_trainer, {.faults = sim::FaultLevel::none});
  cluster.run();
}

TEST(Training, AppliesEveryStepOnce) { EXPECT_TRUE(hunt(program(trainer))); }

TEST(MendedTraining, AppliesEveryStepOnce) { EXPECT_TRUE(hunt(program(mended_trainer))); }

}  // namespace
}  // namespace training
