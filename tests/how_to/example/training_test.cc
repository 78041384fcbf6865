// Your test: the whole cluster in this process, on a network that does what networks do.
#include "training.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <rehearsal/sim/cluster.h>
#include <rehearsal/sim/gtest.h>
#include <rehearsal/sim/oracles/quiet_oracle.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>

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

// An oracle of this program: no push begins that no step has asked for.
class AsManyPushesAsSteps : public sim::QuietOracle {
 public:
  std::string_view name() const override { return "pushes"; }
  void on_event(const sim::Observation& seen, sim::Findings& findings) override {
    if (seen.event.kind != EventKind::execution_started) return;
    if (seen.event.text == "Model.push" && ++pushes_ > kSteps)
      findings.fail(name(), "the model", "a push begins that no step has asked for");
  }
  int64_t pushes_ = 0;
};

TEST(Training, BeginsNoPushThatNoStepHasAskedFor) {
  const Program with_trainer = program(trainer);
  EXPECT_TRUE(sim::hunt({.seeds = 500, .cluster = {.faults = sim::FaultLevel::hostile}},
                        [&](Seed seed, const sim::ClusterOptions& options) {
                          sim::Cluster cluster(seed, with_trainer, options);
                          cluster.add_oracle(std::make_unique<AsManyPushesAsSteps>());
                          cluster.run();
                        }));
}

// After so many updates the weights are those of as many steps, each once.
std::optional<std::string> wrong_weights(const sim::Values& values) {
  for (const auto& model : values.of<Model>("server")) {
    const auto steps = static_cast<double>(model->updates());
    const double expected = -0.1 * steps * (steps - 1) / 2;
    if (std::abs(model->weights()[0].item<double>() - expected) > 0.01)
      return "after " + std::to_string(model->updates()) + " updates: a step came twice";
  }
  return std::nullopt;
}

testing::AssertionResult hunt_with_weights(const Program& program) {
  return sim::hunt({.seeds = 500, .cluster = {.faults = sim::FaultLevel::hostile}},
                   [&program](Seed seed, const sim::ClusterOptions& options) {
                     sim::Cluster cluster(seed, program, options);
                     cluster.add_invariant("weights", wrong_weights);
                     cluster.run();
                   });
}

TEST(Training, HasTheWeightsOfItsStepsAllTheTime) {
  EXPECT_TRUE(hunt_with_weights(program(trainer)));
}

TEST(MendedTraining, HasTheWeightsOfItsStepsAllTheTime) {
  EXPECT_TRUE(hunt_with_weights(program(mended_trainer)));
}

TEST(MendedTraining, AppliesEveryStepOnce) { EXPECT_TRUE(hunt(program(mended_trainer))); }

}  // namespace
}  // namespace training
