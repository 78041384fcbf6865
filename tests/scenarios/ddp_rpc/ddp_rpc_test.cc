#include "scenarios/ddp_rpc/ddp_rpc.h"

#include <gtest/gtest.h>

#include <list>
#include <string>

#include "scenarios/ddp_rpc/hybrid.h"
#include "tests/reference/row.h"
#include "tests/scenarios/simulated.h"

namespace rehearsal::ddp_rpc {
namespace {

TEST(DdpRpc, TrainsTheBitsOfOneProcessWithAnyNumberOfTrainers) {
  // Goal: after every step all replicas have the bits of one process, as have the losses and, at
  // the end, the table. Method: the scenario, which compares them itself and throws, under faults.
  for (const char* trainers : {"trainers=1", "trainers=2", "trainers=3", "trainers=5"})
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const SimulatedRun run = simulated(scenario(), seed, sim::FaultLevel::hostile, {trainers});
      ASSERT_TRUE(run.outcome.ok) << trainers << ": " << failure_text(run.outcome);
    }
}

TEST(DdpRpc, FaultsChangeNoBit) {
  const auto calm = simulated(scenario(), 5, sim::FaultLevel::none, {"epochs=2", "batches=4"});
  ASSERT_TRUE(calm.outcome.ok) << failure_text(calm.outcome);
  EXPECT_EQ(calm.lines.size(), 1u);
  const auto run = simulated(scenario(), 5, sim::FaultLevel::hostile, {"epochs=2", "batches=4"});
  ASSERT_TRUE(run.outcome.ok) << failure_text(run.outcome);
  EXPECT_EQ(run.outcome.results.digest(), calm.outcome.results.digest());
  EXPECT_EQ(run.lines, calm.lines);
  const auto other = simulated(scenario(), 6, sim::FaultLevel::none, {"epochs=2", "batches=4"});
  EXPECT_NE(other.outcome.results.digest(), calm.outcome.results.digest());
}

TEST(DdpRpc, HasTheSameBitsInBothWorlds) {
  const Scenario hybrid = scenario();
  const Options options = hybrid.options.parse({}, "tiny");
  std::list<Reporter> reporters;
  reference::in_both_worlds(
      [&] {
        Reporter& reporter = reporters.emplace_back();
        reporter.line = reporter.progress = [](const std::string&) {};
        return hybrid.program({options, Seed{11}, reporter});
      },
      {.seeds = 20});
  ASSERT_GE(reporters.size(), 23u);
  for (const Reporter& reporter : reporters)
    EXPECT_EQ(reporter.results.digest(), reporters.front().results.digest());
}

TEST(DdpRpc, TheFullSizeHolds) {
  // Goal: the example's own numbers: 100 epochs of 10 batches. Targets are random: nothing is
  // learnt of them that the next batch could use, and the loss stays near that of a guess.
  const auto run = simulated(scenario(), 1, sim::FaultLevel::mild, {"size=full"});
  ASSERT_TRUE(run.outcome.ok) << failure_text(run.outcome);
  ASSERT_EQ(run.lines.size(), 1u);
  EXPECT_EQ(run.lines[0].substr(0, 25), "1000 steps of 2 trainers;");
}

TEST(DdpRpc, OneProcessTrainsAsItSays) {
  // Goal: what the scenario compares with is right. Method: one step of two trainers by hand: the
  // dense part steps with the mean, the table with the sum, and rows that nobody uses stay.
  const Settings settings{.trainers = 2, .epochs = 1, .batches = 1, .seed = 9};
  const TrainedAlone trained = train_alone(settings);
  Table table(table_seed(settings));
  const Dense dense(dense_seed(settings, 0));
  at::Tensor loss = at::zeros({});
  for (int64_t trainer = 0; trainer < 2; ++trainer) {
    const Batch batch = draw_batch(settings, trainer, 0, 0);
    EXPECT_EQ(batch.offsets.size(0), batch.targets.size(0));
    EXPECT_LT(batch.offsets.max().item<int64_t>(), batch.indices.size(0));
    loss = loss + at::cross_entropy_loss(dense.forward(table.forward(batch.indices, batch.offsets)),
                                         batch.targets);
  }
  const at::Tensor before = table.rows();
  loss.backward();
  const at::Tensor expected = before - kLearningRate * table.parameters().front().grad();
  EXPECT_TRUE(expected.allclose(trained.rows, 1e-5, 1e-7));
  const at::Tensor changed = (trained.rows - before).abs().amax(1) > 0;
  EXPECT_TRUE(changed.equal(trained.used));
  EXPECT_LT(changed.sum().item<int64_t>(), kRows);
}

}  // namespace
}  // namespace rehearsal::ddp_rpc
