// The values that a worker saves are there in its later lives, until its disk is lost.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "sim/cluster.h"
#include "tests/sim/adding_program.h"

namespace rehearsal::sim {
namespace {

constexpr int64_t kSteps = 6;

// Counts to six, saves each step, and asks the server in between.
struct CountingProgram {
  std::vector<int64_t> begun_at;  // by life
  std::vector<int64_t> counted;
  Program program;

  CountingProgram() : program(adding_functions()) {
    program.worker("server", [](Worker&) {});
    program.worker("counter", [this](Worker& worker) {
      const auto saved = worker.load_checkpoint("steps");
      int64_t step = saved ? saved->toInt() : 0;
      begun_at.push_back(step);
      for (; step < kSteps; ++step) {
        (void)worker.rpc_sync("server", &add, step, step);
        counted.push_back(step);
        worker.save_checkpoint("steps", step + 1);
      }
    });
  }
};

ClusterOptions calm_options() { return {.faults = FaultLevel::none}; }

TEST(Checkpoint, ALaterLifeGoesOnWhereAnEarlierOneHasSaved) {
  CountingProgram counting;
  Cluster cluster(Seed{1}, counting.program, calm_options());
  ASSERT_TRUE(cluster.run_until([&] { return counting.counted.size() == 3; }));
  cluster.crash("counter");
  cluster.restart("counter");
  const RunReport& report = cluster.try_run();
  EXPECT_TRUE(report.ok) << describe_failure(report);
  EXPECT_EQ(counting.begun_at, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(counting.counted, (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
}

TEST(Checkpoint, AWorkerThatHasLostItsDiskBeginsAnew) {
  CountingProgram counting;
  Cluster cluster(Seed{1}, counting.program, calm_options());
  ASSERT_TRUE(cluster.run_until([&] { return counting.counted.size() == 3; }));
  cluster.crash("counter");
  cluster.lose_disk("counter");
  cluster.restart("counter");
  EXPECT_TRUE(cluster.try_run().ok);
  EXPECT_EQ(counting.begun_at, (std::vector<int64_t>{0, 0}));
}

TEST(Checkpoint, EachKindOfRestartIsDrawnAndFindsWhatItShould) {
  // How often a second life began at the start, and how often further on.
  const auto lives = [](Restart restart) {
    std::pair<int, int> begun;
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      CountingProgram counting;
      Cluster cluster(Seed{seed}, counting.program,
                      {.faults = FaultLevel::mild, .crashes = 1, .restart = restart});
      const RunReport& report = cluster.try_run();
      EXPECT_TRUE(report.ok) << "seed " << seed << "\n" << describe_failure(report);
      for (size_t life = 1; life < counting.begun_at.size(); ++life)
        ++(counting.begun_at[life] == 0 ? begun.first : begun.second);
    }
    return begun;
  };
  EXPECT_EQ(lives(Restart::never), (std::pair<int, int>{0, 0}));
  const auto [anew, kept] = lives(Restart::amnesia);
  EXPECT_GT(anew, 2);
  EXPECT_EQ(kept, 0);
  EXPECT_GT(lives(Restart::checkpoint).second, 2);
  const auto drawn = lives(Restart::drawn);
  EXPECT_GT(drawn.first, 0);
  EXPECT_GT(drawn.second, 0);
}

TEST(Checkpoint, TensorsComeBackBitForBitAndOneMachineDoesNotSeeAnothers) {
  c10::Dict<std::string, at::Tensor> parameters;
  parameters.insert("weight", at::arange(6, at::kDouble).div(7).reshape({2, 3}));
  parameters.insert("bias", at::empty({0}, at::kFloat));
  std::optional<c10::IValue> here;
  bool elsewhere = true;
  Program program{adding_functions()};
  program.worker("one", [&](Worker& worker) {
    worker.save_checkpoint("model", 1);
    worker.save_checkpoint("model", parameters);
    here = worker.load_checkpoint("model");
  });
  program.worker("other", [&](Worker& worker) {
    worker.rpc_sync("one", &add, 1, 1);
    elsewhere = worker.load_checkpoint("model").has_value();
  });
  Cluster cluster(Seed{1}, program, calm_options());
  EXPECT_TRUE(cluster.try_run().ok);
  EXPECT_FALSE(elsewhere);
  ASSERT_TRUE(here.has_value());
  const auto back = here->toGenericDict();
  ASSERT_EQ(back.size(), 2u);
  EXPECT_TRUE(at::equal(back.at("weight").toTensor(), parameters.at("weight")));
  EXPECT_EQ(back.at("bias").toTensor().sizes(), at::IntArrayRef({0}));
}

TEST(Checkpoint, ANameThatCannotBeAFileIsRefused) {
  std::vector<ErrorKind> refused;
  Program program{adding_functions()};
  program.worker("one", [&](Worker& worker) {
    for (const std::string name : {"", "../model", ".hidden", "a b", "a/b"}) {
      try {
        worker.save_checkpoint(name, 1);
      } catch (const RpcError& error) {
        refused.push_back(error.kind());
      }
    }
    worker.save_checkpoint("epoch-3_best.v1", 1);
  });
  Cluster cluster(Seed{1}, program, calm_options());
  EXPECT_TRUE(cluster.try_run().ok);
  EXPECT_EQ(refused, std::vector<ErrorKind>(5, ErrorKind::bad_arguments));
}

TEST(Checkpoint, WhatIsSavedIsPartOfTheFingerprint) {
  const auto fingerprint = [](int64_t value) {
    Program program{adding_functions()};
    program.worker("one", [value](Worker& worker) { worker.save_checkpoint("number", value); });
    return Cluster(Seed{1}, program, calm_options()).run().fingerprint;
  };
  EXPECT_EQ(fingerprint(1), fingerprint(1));
  EXPECT_NE(fingerprint(1), fingerprint(2));
}

}  // namespace
}  // namespace rehearsal::sim
