#include "scenarios/pipeline/pipeline.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scenarios/pipeline/training.h"
#include "tests/scenarios/simulated.h"

namespace rehearsal::pipeline {
namespace {

TEST(PipelineScenario, TrainsTheBitsOfOneProcessInEveryShape) {
  // Goal: whatever the stages, workers, micro-batches and order are, the losses and parameters are
  // those of one process, which the scenario itself compares. Method: shapes that share workers,
  // that interleave and that do not divide; hostile faults.
  uint64_t seed = 0;
  for (const char* schedule :
       {"schedule=one_f_one_b", "schedule=fill_drain", "schedule=zero_bubble"})
    for (const char* stages : {"stages=1", "stages=2", "stages=4"})
      for (const char* workers : {"workers=1", "workers=2", "workers=3"})
        for (const char* micro_batches : {"micro_batches=1", "micro_batches=4"}) {
          const SimulatedRun run = simulated(scenario(), ++seed, sim::FaultLevel::hostile,
                                             {schedule, stages, workers, micro_batches, "steps=2"});
          ASSERT_TRUE(run.outcome.ok) << stages << " " << workers << " " << micro_batches << " "
                                      << schedule << ": " << failure_text(run.outcome);
        }
}

TEST(PipelineScenario, TrainsTheSameBitsOnDevices) {
  // Goal: stages on devices that compute later train what one process does without any, which the
  // scenario itself compares. Method: fewer and more devices than stages of a worker; hostile
  // faults.
  uint64_t seed = 0;
  for (const int devices : {1, 2, 4})
    for (const char* schedule :
         {"schedule=one_f_one_b", "schedule=fill_drain", "schedule=zero_bubble"})
      for (const char* workers : {"workers=1", "workers=2"}) {
        const SimulatedRun run =
            simulated_on_devices(devices, scenario(), ++seed, {.faults = sim::FaultLevel::hostile},
                                 {schedule, "stages=4", workers, "micro_batches=3", "steps=2"});
        ASSERT_TRUE(run.outcome.ok)
            << devices << " " << workers << " " << schedule << ": " << failure_text(run.outcome);
      }
}

TEST(PipelineScenario, LearnsInEveryOrderTheSame) {
  const auto trained = [](const char* schedule) {
    return simulated(scenario(), 7, sim::FaultLevel::none,
                     {schedule, "steps=30", "micro_batches=2"})
        .outcome.results;
  };
  const auto filled = trained("schedule=fill_drain");
  const auto alternating = trained("schedule=one_f_one_b");
  const auto divided = trained("schedule=zero_bubble");
  EXPECT_EQ(filled.numbers(), alternating.numbers());
  EXPECT_EQ(filled.tensors(), alternating.tensors());
  EXPECT_EQ(filled.numbers(), divided.numbers());
  EXPECT_EQ(filled.tensors(), divided.tensors());
  EXPECT_LT(filled.numbers().at("loss 29"), filled.numbers().at("loss 0"));
}

TEST(PipelineScenario, TrainsAlikeHoweverAStepIsSplit) {
  // Goal: the gradients of a step do not depend on its micro-batches. Method: twelve pictures in
  // one, two, … and twelve of them, in one process, of which the scenario finds the bits; sums in
  // another order differ in their last ones.
  const auto trained = [](int64_t micro_batches) {
    const std::vector<std::string> split = {"micro_batches=" + std::to_string(micro_batches),
                                            "rows=" + std::to_string(12 / micro_batches),
                                            "stages=3", "steps=5"};
    const SimulatedRun run = simulated(scenario(), 3, sim::FaultLevel::none, split);
    EXPECT_TRUE(run.outcome.ok) << failure_text(run.outcome);
    const Settings settings = settings_of(scenario().options.parse(split, "tiny"), Seed{3});
    return train_alone(settings);
  };
  const Trained whole = trained(1);
  ASSERT_EQ(whole.losses.size(), 5u);
  ASSERT_EQ(whole.parameters.size(), 3u);
  EXPECT_NE(whole.losses.front(), whole.losses.back());
  for (const int64_t micro_batches : {2, 3, 4, 6, 12}) {
    SCOPED_TRACE(micro_batches);
    const Trained divided = trained(micro_batches);
    for (size_t step = 0; step < whole.losses.size(); ++step)
      EXPECT_NEAR(divided.losses[step], whole.losses[step], 1e-5 * whole.losses[step]);
    for (size_t stage = 0; stage < whole.parameters.size(); ++stage)
      for (size_t i = 0; i < whole.parameters[stage].size(); ++i)
        EXPECT_TRUE(divided.parameters[stage][i].allclose(whole.parameters[stage][i], 1e-4, 1e-6))
            << "parameter " << i << " of stage " << stage;
  }
}

TEST(PipelineScenario, DrawsWhoComputedWhen) {
  // Goal: the picture of a step is that of its schedule, and stages that rest learn the same bits.
  const SimulatedRun run = simulated(scenario(), 1, sim::FaultLevel::none,
                                     {"schedule=zero_bubble", "stages=3", "workers=3",
                                      "micro_batches=4", "pass_ms=100", "picture=42"});
  ASSERT_TRUE(run.outcome.ok) << failure_text(run.outcome);
  EXPECT_EQ(run.lines.at(1),
            "worker0  F0 F1 F2 ......W0    F3 W1    W2    W3    \n"
            "worker1  ...F0 F1 ...B0 F2 B1 W0 F3 B2 W1 B3 W2 W3 \n"
            "worker2  ......F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3 \n");
}

}  // namespace
}  // namespace rehearsal::pipeline
