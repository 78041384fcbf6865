#include "sim/world/machines.h"

#include <gtest/gtest.h>

#include "sim/cluster.h"
#include "sim/world/fault_plan.h"
#include "tests/sim/adding_program.h"

namespace rehearsal::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ClusterOptions without_faults() { return {.faults = FaultLevel::none}; }

bool calls_are_served(Cluster& cluster) {
  return cluster.run_until([&] { return cluster.node("server").census().executions > 0; });
}

// Goal: a worker that stands still for less than `peer_timeout` is not taken for dead.
TEST(Machines, APausedWorkerGoesOnWhereItWas) {
  const Program program = adding_program();
  for (const char* worker : {"server", "client0"}) {
    Cluster cluster(Seed{1}, program, without_faults());
    ASSERT_TRUE(calls_are_served(cluster));
    const Instant pause = cluster.now();
    cluster.pause(worker, seconds(10));
    const RunReport& report = cluster.run();
    EXPECT_EQ(report.pauses, 1u);
    EXPECT_EQ(report.calls, 40u);
    EXPECT_GE(Instant{report.virtual_time} - pause, seconds(10));
    EXPECT_LT(Instant{report.virtual_time} - pause, seconds(11));
    EXPECT_EQ(report.network.losses, 0u);
  }
}

TEST(Machines, NothingHappensAtAPausedWorker) {
  const Program program = adding_program();
  Cluster cluster(Seed{1}, program, without_faults());
  ASSERT_TRUE(calls_are_served(cluster));
  cluster.pause("server", seconds(5));
  cluster.run_until_quiet();
  EXPECT_EQ(cluster.node("client0").census().pending_calls, 1u);
  cluster.advance(seconds(4));
  EXPECT_EQ(cluster.node("client0").census().pending_calls, 1u);
  EXPECT_EQ(cluster.node("client1").census().pending_calls, 1u);
  EXPECT_EQ(cluster.run().calls, 40u);
}

// Goal: who was given up while it stood still ends with an error when it goes on, and so do the
// others, before.
TEST(Machines, AZombieIsFencedAndEnds) {
  const Program program = adding_program();
  Cluster cluster(Seed{1}, program, without_faults());
  ASSERT_TRUE(calls_are_served(cluster));
  const Instant pause = cluster.now();
  cluster.pause("client0", seconds(100));
  const RunReport& report = cluster.try_run();
  ASSERT_TRUE(report.ok) << describe_failure(report);
  ASSERT_TRUE(report.workers[0].error);
  EXPECT_EQ(report.workers[0].error->kind, ErrorKind::peer_lost);
  EXPECT_EQ(report.workers[0].error->worker, "client0");
  ASSERT_TRUE(report.workers[1].error);
  EXPECT_GE(Instant{report.virtual_time} - pause, seconds(59));
  EXPECT_EQ(report.crashes, 0u);
}

TEST(Machines, ASlowWorkersStepsTakeTheirTime) {
  const Program program = adding_program();
  ClusterOptions options{.faults = FaultLevel::hostile};
  options.overrides = {{class_key(FaultClass::slow_workers), kShares - 1},
                       {share_key(), 1},
                       {strength_key(FaultClass::slow_workers, WorkerId{0}), 5 << 10}};
  for (const FaultClass fault : kFaultClasses)
    if (fault != FaultClass::slow_workers) options.without.push_back(fault);
  options.otherwise = Otherwise::benign;
  Cluster quick(Seed{1}, program, options);
  const Duration before = quick.run().virtual_time;
  const Key chosen{.kind = DecisionKind::swarm, .subject = {WorkerId{0}, 0}, .number = 130};
  options.overrides.push_back({chosen, 1});
  Cluster slow(Seed{1}, program, options);
  const RunReport& report = slow.run();
  EXPECT_NE(report.faults.find("a step of server takes 320 µs"), std::string::npos)
      << report.faults;
  const Duration steps = std::chrono::microseconds(320) * report.workers[0].decisions;
  EXPECT_GE(report.virtual_time, steps * 9 / 10);
  EXPECT_GT(report.virtual_time, before);
}

// Goal: pauses, slow workers and clocks that jump keep the promise of hostile: every call succeeds.
TEST(Machines, HostileMachinesMakeNoCallFail) {
  const Program program = adding_program();
  uint64_t pauses = 0;
  uint64_t jumps = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Cluster cluster(Seed{seed}, program, {.faults = FaultLevel::hostile});
    const RunReport& report = cluster.try_run();
    ASSERT_TRUE(report.ok) << "seed " << seed << "\n" << describe_failure(report);
    EXPECT_EQ(report.calls, 40u);
    pauses += report.pauses;
    jumps += report.clock_jumps;
  }
  EXPECT_GT(pauses, 20u);
  EXPECT_GT(jumps, 20u);
}

TEST(Machines, LongPausesHoldForManySeeds) {
  const Program program = adding_program();
  uint64_t pauses = 0;
  uint64_t fenced = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Cluster cluster(Seed{seed}, program, {.long_pauses = true});
    const RunReport& report = cluster.try_run();
    ASSERT_TRUE(report.ok) << "seed " << seed << "\n" << describe_failure(report);
    pauses += report.pauses;
    for (const WorkerReport& worker : report.workers) fenced += worker.error ? 1 : 0;
  }
  EXPECT_GT(pauses, 50u);
  EXPECT_GT(fenced, 10u);
}

}  // namespace
}  // namespace rehearsal::sim
