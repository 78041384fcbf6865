// The storm's workers ask one another for much, and never wait in a ring.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/api/program.h"
#include "core/api/worker.h"
#include "scenarios/storm/actor.h"
#include "scenarios/storm/functions.h"
#include "sim/cluster.h"

namespace rehearsal::storm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Newcomer, IsFoundByItsRankBeforeItAsksWhetherItIsKnown) {
  // Goal: a look-up that has the only place to execute at its worker does not wait for a newcomer
  // that waits for this place itself. Method: the look-up begins while the newcomer is a member and
  // has not published yet; then the newcomer asks all members.
  sim::ClusterOptions options{.faults = sim::FaultLevel::none};
  options.adjust_node = [](NodeOptions& node) { node.execution_limit = 1; };
  Program program{functions()};
  Duration asked_for{};
  int64_t rank = 0;
  program.worker("founder", [](Worker& worker) {
    worker.wait_for_worker("newcomer", seconds(10));
    worker.sleep(seconds(1));
  });
  program.worker("asker", [&](Worker& worker) {
    worker.wait_for_worker("newcomer", seconds(10));
    const Instant begin = worker.now();
    rank = worker.with_timeout(Timeout::never())
               .rpc_sync("founder", &total_by_name, 2, std::string("rank"), Journey{});
    asked_for = worker.now() - begin;
  });
  program.worker("newcomer", [](Worker& worker) {
    worker.sleep(milliseconds(100));
    std::vector<AutogradContext> kept;
    Actor(worker, Seed{1}, kept, false).be_known();
    worker.sleep(seconds(1));
  });
  program.dynamic();
  sim::Cluster(Seed{1}, program, options).run();
  EXPECT_EQ(rank, 2);
  EXPECT_LT(asked_for, seconds(1));
}

TEST(Leaver, IsNotWaitedForInTheOnlyPlaceToExecute) {
  // Goal: a look-up at somebody else of a member that has left leaves the others time to execute.
  // Method: one that is served where no second execution may run, and a call behind it.
  sim::ClusterOptions options{.faults = sim::FaultLevel::none};
  options.adjust_node = [](NodeOptions& node) { node.execution_limit = 1; };
  Program program{functions()};
  program.worker("founder", [](Worker& worker) {
    worker.wait_for_worker("asker", seconds(10));
    worker.sleep(seconds(5));
  });
  program.worker("asker", [&](Worker& worker) {
    worker.sleep(seconds(1));
    const auto found =
        worker.rpc_async("founder", &total_by_name, 2, std::string("rank"), Journey{});
    EXPECT_EQ(worker.rpc_sync("founder", &travel, Journey{}), expected_travel(Journey{}, 3));
    const Result<int64_t> outcome = found.result();
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().kind, ErrorKind::timeout);
  });
  program.worker("leaver", [](Worker&) {});
  program.dynamic();
  const auto& report = sim::Cluster(Seed{1}, program, options).run();
  EXPECT_LT(report.virtual_time, seconds(10));
}

}  // namespace
}  // namespace rehearsal::storm
