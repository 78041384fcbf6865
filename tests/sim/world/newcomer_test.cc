// Goal: what a worker serves may call every other, also when it has come back and is called before
// it has met them all. Method: its link to one of them is slow.
#include <gtest/gtest.h>

#include "core/api/call_context.h"
#include "core/api/program.h"
#include "core/api/worker.h"
#include "core/base/mutants.h"
#include "sim/cluster.h"
#include "sim/gtest.h"
#include "sim/run_report.h"

namespace rehearsal::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int64_t seven() { return 7; }

int64_t made_at(CallContext& context, const std::string& to) {
  return context.remote(to, &seven).to_here();
}

class EarlyMessages final : public Trace {
 public:
  void on_event(const Event& event) override {
    const bool is_early = event.text == "a message waits until its receiver serves";
    if (event.kind == EventKind::mark && is_early) ++count;
  }
  int count = 0;
};

// Calls until the worker is back.
int64_t insist(Worker& worker) {
  while (true) {
    worker.sleep(milliseconds(100));
    try {
      return worker.rpc_sync("back", &made_at, "far");
    } catch (const RpcError& error) {
      if (error.kind() != ErrorKind::peer_lost) throw;
    }
  }
}

// A worker that comes back, and whose link to one of the others is slow, is called by another one.
// Returns the value that the caller was given in the end.
int64_t given_by_newcomer(Seed seed, const ClusterOptions& options) {
  FunctionRegistry registry;
  registry.function("seven", &seven).function("made_at", &made_at);
  int64_t found = 0;
  Program program(std::move(registry));
  program.worker("far").worker("caller", [&found](Worker& worker) {
    worker.sleep(seconds(2));
    found = insist(worker);
  });
  program.worker("back");
  Cluster cluster(seed, program, options);
  cluster.advance(seconds(1));
  cluster.network().between("far", "back").delay(seconds(2), seconds(3));
  cluster.crash("back");
  cluster.restart("back");
  (void)cluster.try_run();
  return found;
}

TEST(Newcomer, ServesOnceItHasMetAllWorkers) {
  EarlyMessages early;  // of all runs
  const auto scene = [&](Seed seed, ClusterOptions options) {
    options.traces.push_back(&early);
    EXPECT_EQ(given_by_newcomer(seed, options), 7);
  };
  EXPECT_TRUE(hunt({.seeds = 50, .cluster = {.faults = FaultLevel::none}}, scene));
  EXPECT_GT(early.count, 0);
}

TEST(Newcomer, ThatServesAtOnceCannotCallWhomItHasNotMet) {
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  ClusterOptions options{.strategy = StrategyKind::random_walk, .faults = FaultLevel::none};
  options.adjust_node = [](NodeOptions& node) { node.mutants = {"serves_before_met"}; };
  bool found = false;
  for (uint64_t seed = 1; seed <= 50 && !found; ++seed)
    found = given_by_newcomer(Seed{seed}, options) != 7;
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace rehearsal::sim
