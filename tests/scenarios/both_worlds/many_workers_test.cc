// Goal: many workers are one cluster like any other. Method: all join, call, and shut down
// together.
#include <gtest/gtest.h>

#include "core/api/program.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/run_report.h"
#include "tests/scenarios/tool_run.h"
#include "tests/sim/adding_program.h"

namespace rehearsal::command_line {
namespace {

TEST(ManyWorkers, AThousandInTheSimulatorJoinCallOneOfThemAndShutDown) {
  int64_t sum = 0;
  Program program(sim::adding_functions());
  program.worker(
      "worker",
      [&sum](Worker& worker) {
        sum += worker.rpc_sync("worker0", &sim::add, worker.id().value, 1);
      },
      Count{1000});
  sim::Cluster cluster(Seed{1}, program, {.faults = sim::FaultLevel::none});
  cluster.run();
  EXPECT_EQ(sum, 1000 * 999 / 2 + 1000);
}

TEST(ManyWorkers, SixtyFourProcessesJoinCallEachOtherAndShutDown) {
  const ToolRun run = run_tool("run storm --net tcp --set workers=64 --set operations=1 --json");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_GT(run.json()["calls"], 64);
}

}  // namespace
}  // namespace rehearsal::command_line
