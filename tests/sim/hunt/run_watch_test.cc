#include "sim/hunt/run_watch.h"

#include <gtest/gtest.h>

#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/gtest.h"

namespace rehearsal::sim {
namespace {

using namespace std::chrono_literals;

volatile bool goes_on = true;

int64_t spin_for_ever(int64_t start) {
  while (goes_on) start = start + 1;
  return start;
}
int64_t next(int64_t number) { return number + 1; }

Program program_that_calls(int64_t (*function)(int64_t)) {
  FunctionRegistry registry;
  registry.function("spin_for_ever", &spin_for_ever).function("next", &next);
  Program program(std::move(registry));
  program.worker("ps");
  program.worker("trainer",
                 [function](Worker& worker) { (void)worker.rpc_sync("ps", function, int64_t{1}); });
  return program;
}

TEST(RunWatch, EndsAClusterThatHangsAndSaysWhereAndHowToRepeatIt) {
  // Goal: a test of a user that hangs says so by itself. Method: a served function that never comes
  // back, in a process of its own.
  const Program program = program_that_calls(&spin_for_ever);
  EXPECT_EXIT(
      Cluster(Seed{3}, program, {.watchdog = 200ms}).run(), testing::ExitedWithCode(1),
      "the run hangs in 'spin_for_ever' at worker 'ps': .*\n(.*\n)*.*spin_for_ever\\(long\\) at "
      "(.*\n)*repeat it with:\nthe same program and options with Seed\\{3\\}\n");
}

TEST(RunWatch, OfAHuntEndsWithTheLineThatRepeatsTheRun) {
  // Goal: as a crash in a hunt. Method: the same function, hunted.
  const Program program = program_that_calls(&spin_for_ever);
  const auto hunted = [&program] {
    (void)hunt({.seeds = 5, .cluster = {.watchdog = 200ms}},
               [&program](Seed seed, const ClusterOptions& options) {
                 Cluster(seed, program, options).run();
               });
  };
  EXPECT_EXIT(hunted(), testing::ExitedWithCode(1),
              "the run hangs in 'spin_for_ever' at worker 'ps'(.*\n)*the process of the run ended; "
              "repeat it with:\nREHEARSAL_RUN='--seed 1 ");
}

TEST(RunWatch, LeavesNoTraceInARun) {
  // Goal: watched or not, a run is the same. Method: the fingerprints of both.
  const Program program = program_that_calls(&next);
  Cluster watched(Seed{3}, program, {.watchdog = 5s});
  Cluster unwatched(Seed{3}, program, {.watchdog = {}});
  EXPECT_EQ(watched.run().fingerprint, unwatched.run().fingerprint);
}

}  // namespace
}  // namespace rehearsal::sim
