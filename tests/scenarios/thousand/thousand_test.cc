// Goal: hundreds of workers are one cluster like any other. Method: all join, call, and shut down
// together. REHEARSAL_EFFORT=10 makes them a thousand, which takes two minutes: each joins each.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/api/program.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/run_report.h"
#include "tests/effort.h"
#include "tests/sim/adding_program.h"

namespace rehearsal {
namespace {

TEST(ManyWorkers, HundredsInTheSimulatorJoinCallOneOfThemAndShutDown) {
  const auto workers = static_cast<int64_t>(std::min<uint64_t>(1000, tries(400)));
  int64_t sum = 0;
  Program program(sim::adding_functions());
  program.worker(
      "worker",
      [&sum](Worker& worker) {
        sum += worker.rpc_sync("worker0", &sim::add, worker.id().value, 1);
      },
      Count{static_cast<uint32_t>(workers)});
  sim::Cluster cluster(Seed{1}, program, {.faults = sim::FaultLevel::none});
  cluster.run();
  EXPECT_EQ(sum, workers * (workers - 1) / 2 + workers);
}

}  // namespace
}  // namespace rehearsal
