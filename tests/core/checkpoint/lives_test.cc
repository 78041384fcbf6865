// The lives of a worker that has lost another, and what it has saved meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/api/recovery.h"
#include "tests/core/checkpoint/small_training.h"

namespace rehearsal::testing {
namespace {

using sim::Cluster;
using sim::ClusterOptions;
using sim::FaultLevel;

TEST(Lives, AreToldToLaterOnesWithWhomTheyHadLost) {
  // Goal: a life knows why it is not the first. Method: two that end by the loss of another, then
  // one that asks.
  std::vector<EndedLife> known;
  uint32_t lives = 0;
  Program program{FunctionRegistry()};
  program
      .worker("trainer",
              [&](Worker& worker) {
                known = ended_lives(worker);
                if (lives++ == 2) return;
                throw RpcError({.kind = ErrorKind::peer_lost,
                                .text = "loss " + std::to_string(lives),
                                .worker = "ps" + std::to_string(lives)});
              })
      .recovering();
  Cluster(Seed{3}, program, {.faults = FaultLevel::none}).run();
  ASSERT_EQ(known.size(), 2u);
  EXPECT_EQ(known[0].life, 0u);
  EXPECT_EQ(known[0].lost, "ps1");
  EXPECT_EQ(known[0].why, "loss 1");
  EXPECT_EQ(known[1].life, 1u);
  EXPECT_EQ(known[1].lost, "ps2");
  EXPECT_EQ(known[1].why, "loss 2");
}

TEST(Lives, AreBegunAgainOnlyAfterWhatALossMayHaveCaused) {
  // Goal: an error of the program's own is final. Method: a main that fails with each kind, where
  // it would be given one more life.
  for (int number = 0; number <= static_cast<int>(kLastErrorKind); ++number) {
    const auto kind = static_cast<ErrorKind>(number);
    uint32_t lives = 0;
    Program program{FunctionRegistry()};
    program
        .worker("trainer",
                [&](Worker&) {
                  if (++lives == 1) throw RpcError({.kind = kind, .text = "it failed"});
                })
        .recovering();
    Cluster cluster(Seed{3}, program, {.faults = FaultLevel::none});
    static_cast<void>(cluster.try_run());
    EXPECT_EQ(lives, is_recoverable(kind) ? 2u : 1u) << name_of(kind);
  }
  EXPECT_TRUE(is_recoverable(ErrorKind::peer_lost));
  EXPECT_FALSE(is_recoverable(ErrorKind::remote_exception));
  EXPECT_FALSE(is_recoverable(ErrorKind::storage));
}

// When the main of "trainer" went on behind its save, and when anybody's part was on its disk.
class SavesBesideSteps : public Trace {
 public:
  void on_event(const Event& event) override {
    ++events_;
    if (event.kind == EventKind::note && event.text == "went on") went_on_ = events_;
    if (event.kind == EventKind::checkpoint_saved && first_saved_ == 0) first_saved_ = events_;
  }
  [[nodiscard]] uint64_t went_on() const { return went_on_; }
  [[nodiscard]] uint64_t first_saved() const { return first_saved_; }

 private:
  uint64_t events_ = 0;
  uint64_t went_on_ = 0;
  uint64_t first_saved_ = 0;
};

TEST(Lives, GoOnWhileWhatTheySaveIsWritten) {
  // Goal: a save costs a training the copy only. Method: the main's next step, and the first part
  // that is on a disk; and that the cut is that of the save, not of the steps that followed.
  SavesBesideSteps order;
  Program program(training_registry());
  std::vector<double> positions;
  program
      .worker("trainer",
              [&](Worker& worker) {
                const RemoteModule<NoisyLayer> layer(worker, "first", 2, 2);
                double position = 1;
                DistributedCheckpoint checkpoint(worker, "one");
                checkpoint.module("layer", layer).value("position", position);
                const int64_t step = checkpoint.resume();
                positions.push_back(position);
                if (step > 0) return;
                position = 2;
                checkpoint.save(1);
                worker.note("went on", 1);
                position = 3;
                EXPECT_EQ(checkpoint.committed(), 0);
                checkpoint.wait();
                EXPECT_EQ(checkpoint.committed(), 1);
                throw RpcError({.kind = ErrorKind::peer_lost, .text = "a loss", .worker = "x"});
              })
      .recovering();
  program.worker("first").recovering();
  ClusterOptions options{.faults = FaultLevel::none};
  options.traces = {&order};
  Cluster(Seed{3}, program, options).run();
  EXPECT_EQ(positions, (std::vector<double>{1, 2}));
  EXPECT_GT(order.went_on(), 0u);
  EXPECT_GT(order.first_saved(), order.went_on());
}

}  // namespace
}  // namespace rehearsal::testing
