#include <gtest/gtest.h>

#include <vector>

#include "core/api/program.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "tests/effort.h"
#include "tests/primitives.h"

// A worker whose executions wait in primitives of Boost.Fiber crashes, wherever it is.
namespace rehearsal::sim {
namespace {

// One of each kind.
struct AllKinds {
  AllKinds() {
    for (int64_t number = 0; number < kPrimitives; ++number)
      kinds.push_back(make_primitive(number));
  }
  std::vector<std::unique_ptr<Primitive>> kinds;
};

Primitive& kind(CallContext& context, int64_t number) {
  return *context.state<AllKinds>().kinds[static_cast<size_t>(number)];
}

void waits(CallContext& context, int64_t number) { kind(context, number).wait(context); }
void wakes(CallContext& context, int64_t number) { kind(context, number).wake(context); }

Program all_kinds() {
  FunctionRegistry registry;
  registry.function("pong", &pong).function("waits", &waits).function("wakes", &wakes);
  Program program(std::move(registry));
  program.worker("caller", [](Worker& worker) {
    std::vector<Future<Unit>> ends;
    for (int64_t number = 0; number < kPrimitives; ++number) {
      ends.push_back(worker.rpc_async("server", &waits, number));
      ends.push_back(worker.rpc_async("server", &wakes, number));
    }
    for (const Future<Unit>& end : ends) static_cast<void>(end.result());
  });
  program.worker("server").state<AllKinds>();
  return program;
}

TEST(PrimitiveCrashes, AnywhereLeaveNothing) {
  // Goal: a crash unwinds who waits, is woken, or takes a lock back; the primitives die well.
  // Method: each event of a server as the place of its crash, in seeds of their own.
  const Program program = all_kinds();
  uint64_t crashes = 0;
  uint64_t left = 0;
  for (uint64_t seed = 1; crashes < tries(1000); ++seed) {
    Cluster whole(Seed{seed}, program, {.restart = Restart::never});
    const uint64_t events = whole.run().workers[1].decisions;
    const uint64_t step = 1 + events / 50;
    for (uint64_t event = 1 + seed % step; event < events; event += step) {
      Cluster cluster(Seed{seed}, program,
                      {.restart = Restart::never, .crash_points = {{WorkerId{1}, event}}});
      const RunReport& report = cluster.try_run();
      ASSERT_TRUE(report.ok) << "seed " << seed << ", event " << event << ": "
                             << describe_failure(report);
      crashes += report.crashes;
      left += report.stacks_left;
    }
  }
  std::cout << crashes << " crashes left " << left << " stacks\n";
  EXPECT_LT(left, crashes / 10);
}

}  // namespace
}  // namespace rehearsal::sim
