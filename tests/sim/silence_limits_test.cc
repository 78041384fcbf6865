// Goal: workers that are well never take each other for dead, whatever `peer_timeout` each has,
// also where it is shorter than the heartbeat that they were given. Method: two workers whose mains
// only let time pass, ten times as long as the longer of both limits; the heartbeat stays at its
// default of 5 s. tests/real_net/worker/silence_limits_test.cc does the same over TCP.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/api/program.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "tests/effort.h"

namespace rehearsal::sim {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLimits[] = {milliseconds(100), seconds(4), seconds(60)};

Program idle_program(Duration idle, bool dynamic) {
  Program program{FunctionRegistry()};
  for (const char* name : {"a", "b"})
    program.worker(name, [idle](Worker& worker) { worker.sleep(idle); });
  if (dynamic) program.dynamic();
  return program;
}

ClusterOptions with_limits(Duration of_a, Duration of_b) {
  return {.faults = FaultLevel::none,
          .progress_bound = hours(24),
          .adjust_node = [of_a, of_b](NodeOptions& node) {
            node.peer_timeout = node.id == WorkerId{0} ? of_a : of_b;
          }};
}

void expect_nobody_lost(const RunReport& report, Duration idle) {
  EXPECT_TRUE(report.ok) << describe_failure(report);
  EXPECT_GE(report.virtual_time, idle * 99 / 100);  // by clocks that may be fast
  for (const WorkerReport& worker : report.workers) EXPECT_FALSE(worker.error) << worker.name;
}

TEST(SilenceLimits, NobodyIsLostOnIdleLinks) {
  for (const bool dynamic : {false, true})
    for (const Duration of_a : kLimits)
      for (const Duration of_b : kLimits) {
        const Duration idle = 10 * std::max(of_a, of_b);
        SCOPED_TRACE(std::to_string(of_a.count()) + " ns, " + std::to_string(of_b.count()) + " ns");
        const Program program = idle_program(idle, dynamic);
        Cluster cluster(Seed{1}, program, with_limits(of_a, of_b));
        expect_nobody_lost(cluster.try_run(), idle);
      }
}

TEST(SilenceLimits, NobodyIsLostUnderMildFaultsThatTheShorterLimitBears) {
  const Duration idle = seconds(100);
  const Program program = idle_program(idle, /*dynamic=*/false);
  for (const auto& [of_a, of_b] : {std::pair(10, 10), std::pair(10, 60), std::pair(60, 10)})
    for (uint64_t seed = 1; seed <= tries(10); ++seed) {
      SCOPED_TRACE(std::to_string(of_a) + " s, " + std::to_string(of_b) + " s, seed " +
                   std::to_string(seed));
      ClusterOptions options = with_limits(seconds(of_a), seconds(of_b));
      options.faults = FaultLevel::mild;
      Cluster cluster(Seed{seed}, program, options);
      expect_nobody_lost(cluster.try_run(), idle);
    }
}

}  // namespace
}  // namespace rehearsal::sim
