// Goal: what a worker that shuts down in good order has not taken out of its tables, and every
// timer that it has not taken back, is found by name; what may stay is not. Method: numbers by
// hand; the census that a node takes before its end clears what is counted.
#include "sim/oracles/no_leak.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/worker.h"
#include "core/base/mutants.h"
#include "sim/cluster.h"
#include "tests/sim/oracles/oracle_fixture.h"

namespace rehearsal::sim {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST(LeftAtEnd, IsNamedTableByTable) {
  EXPECT_EQ(left_at_end({}, false), "");
  EXPECT_EQ(left_at_end({.pending_calls = 1}, false), "1 pending calls");
  EXPECT_EQ(left_at_end({.executions = 2, .waiting = 3}, false), "2 executions, 3 waiting calls");
  EXPECT_EQ(left_at_end({.users = 3, .pending_users = 2, .pending_children = 1}, false),
            "3 user references, 2 unconfirmed references, 1 pending children");
  EXPECT_EQ(left_at_end({.published = 1, .contexts = 2, .passes = 3}, false),
            "1 published names, 2 contexts, 3 passes");
  EXPECT_EQ(left_at_end({.parked = 1, .lookups = 2}, false), "1 parked stacks, 2 lookups");
  EXPECT_EQ(left_at_end({.cancelled_makers = 4}, false), "4 cancelled makers of calls");
  EXPECT_EQ(left_at_end({.awaited_values = 1, .late_releases = 2}, false),
            "1 values that nobody has created, 2 late releases of contexts");
}

TEST(LeftAtEnd, ACountThatOutlivesWhatItCountsIsNamed) {
  EXPECT_EQ(left_at_end({.tallied = 2}, false), "2 counts of what peers have caused");
  EXPECT_EQ(left_at_end({.tallied = 2}, true), "");
  EXPECT_EQ(left_at_end({.tallied = 2}, false, /*lied_to=*/true), "");
}

TEST(LeftAtEnd, APartThatMayStayIsNotCounted) {
  EXPECT_EQ(left_at_end({.timers = 3, .loose_timers = 3}, false), "");
  EXPECT_EQ(left_at_end({.timers = 3, .loose_timers = 2}, false), "1 timers");
  EXPECT_EQ(left_at_end({.unacknowledged = 2, .shutdown_frames = 2}, false), "");
  EXPECT_EQ(left_at_end({.unacknowledged = 2, .shutdown_frames = 0}, false),
            "2 unacknowledged frames");
  EXPECT_EQ(left_at_end({.unacknowledged = 2, .shutdown_frames = 0}, true), "");
  EXPECT_EQ(left_at_end({.gatherings = 1}, false), "");
  EXPECT_EQ(left_at_end({.given_up_calls = 1, .early_cancels = 1, .awaited_members = 1}, false),
            "");
}

TEST(LeftAtEnd, AMadWorkerLeavesWhatItNeverAcknowledgesAndWhatItHasInvented) {
  const NodeCensus lied_to{
      .contexts = 1, .send_functions = 3, .unacknowledged = 2, .awaited_values = 1};
  EXPECT_EQ(left_at_end(lied_to, false),
            "1 contexts, 3 send functions, "
            "2 unacknowledged frames, 1 values that nobody has created");
  EXPECT_EQ(left_at_end(lied_to, false, /*lied_to=*/true), "");
  EXPECT_EQ(left_at_end({.executions = 1, .owners = 1}, false, /*lied_to=*/true), "1 owned values");
}

TEST(LeftAtEnd, WhoLeavesADynamicGroupMayStillOwnWhatOthersHold) {
  const NodeCensus owning{.owners = 4, .shared_owners = 3, .owner_forks = 2, .owner_handles = 1};
  EXPECT_EQ(left_at_end(owning, false),
            "4 owned values, 3 owned values that others refer to, 2 forks of owned values, "
            "1 handles of owned values");
  EXPECT_EQ(left_at_end(owning, true), "");
  EXPECT_EQ(left_at_end({.users = 1, .timers = 1}, true), "1 user references, 1 timers");
}

int64_t answer() { return 1; }

// Promises that nobody completes, and that live for as long as the program of the test.
std::vector<Promise<int64_t>>* promises = nullptr;

Future<int64_t> promise_for_ever(CallContext& call) {
  return promises->emplace_back(call.promise<int64_t>()).future();
}

Program program_of(const Program::Main& main) {
  FunctionRegistry registry;
  registry.function("answer", &answer).function("promise_for_ever", &promise_for_ever);
  Program program(std::move(registry));
  program.worker("client", main);
  program.worker("server");
  return program;
}

class TimersAtStop : public OracleTest {
 protected:
  void stop_with(uint64_t timers, std::string_view why, bool lied_to = false) {
    use(make_no_leak(lied_to));
    see(kUser, Event{.kind = EventKind::node_stopped, .text = why});
    LifeView user = view_of(kUser);
    user.timers_at_stop = timers;
    oracle->at_end({.lives = {view_of(kOwner), user}}, findings);
  }
};

TEST_F(TimersAtStop, AreFoundWhereAWorkerHasShutDown) {
  stop_with(2, "the worker has shut down");
  expect_finding("worker 'user'", "it has shut down, and 2 timers of its runtime were left");
}

TEST_F(TimersAtStop, MayBeLeftWhereItWasCutOffOrLiedTo) {
  stop_with(2, "worker 'owner' was lost");
  stop_with(2, "the worker has shut down", /*lied_to=*/true);
  stop_with(0, "the worker has shut down");
  expect_silent();
}

TEST(CensusAtEnd, IsTakenBeforeTheTablesAreCleared) {
  // Goal: what may stay is in it, and is gone afterwards; the run holds. Method: a timer that
  // nobody waits for, a gathering whose other member never comes, a call that is given up before
  // its value is there.
  std::vector<Promise<int64_t>> kept;
  promises = &kept;
  const Program program = program_of([](Worker& worker) {
    static_cast<void>(worker.after(hours(1)));
    EXPECT_THROW(static_cast<void>(worker.all_gather(int64_t{1}, {}, seconds(1))), RpcError);
    EXPECT_THROW(
        static_cast<void>(worker.with_timeout(seconds(1)).rpc_sync("server", &promise_for_ever)),
        RpcError);
    EXPECT_EQ(worker.rpc_sync("server", &answer), 1);
  });
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  EXPECT_TRUE(cluster.node("client").census_at_end() == std::nullopt);
  cluster.run();
  const NodeCensus client = *cluster.node("client").census_at_end();
  EXPECT_EQ(client.timers, 1u);
  EXPECT_EQ(client.loose_timers, 1u);
  EXPECT_EQ(client.gatherings, 1u);
  EXPECT_EQ(cluster.node("client").census().timers, 0u);
  EXPECT_EQ(cluster.node("client").census().gatherings, 0u);
  EXPECT_EQ(cluster.node("server").census_at_end()->given_up_calls, 1u);
  EXPECT_EQ(cluster.node("server").census().given_up_calls, 0u);
}

TEST(CensusAtEnd, ShowsTheDeadlineThatACallHasLeft) {
  // Goal: the table is looked at while it is whole. Method: a call whose deadline is not taken back
  // when it is answered.
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  const Program program =
      program_of([](Worker& worker) { EXPECT_EQ(worker.rpc_sync("server", &answer), 1); });
  for (const bool forgets : {false, true}) {
    ClusterOptions options{.faults = FaultLevel::none};
    if (forgets)
      options.adjust_node = [](NodeOptions& node) {
        node.mutants = {"answered_call_keeps_its_deadline"};
      };
    Cluster cluster(Seed{1}, program, options);
    const RunReport report = cluster.try_run();
    ASSERT_EQ(report.ok, !forgets) << describe_failure(report);
    if (forgets) {
      EXPECT_EQ(to_text(*report.failure),
                "no leak: worker 'client': when it had shut down, there were left: 1 timers");
    }
  }
}

TEST(CensusAtEnd, ThereIsNoneOfAWorkerThatCrashed) {
  const Program program = program_of([](Worker& worker) { worker.sleep(seconds(10)); });
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  cluster.advance(seconds(1));
  cluster.crash("server");
  static_cast<void>(cluster.try_run());
  EXPECT_FALSE(cluster.node("server").census_at_end().has_value());
}

}  // namespace
}  // namespace rehearsal::sim
