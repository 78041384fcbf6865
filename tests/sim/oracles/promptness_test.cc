// Goal: a message that nobody acknowledges is found, though all goes on. Method: a worker that is
// called once and then hears nothing, beside two that talk to each other; with and without the rule
// that an acknowledgement goes by itself.
#include <gtest/gtest.h>

#include <cstdint>

#include "core/api/call_context.h"
#include "core/api/worker.h"
#include "core/base/mutants.h"
#include "sim/cluster.h"

namespace rehearsal::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int64_t answer() { return 1; }

// Its answer to `once` is acknowledged by nothing else.
Program program_of() {
  FunctionRegistry registry;
  registry.function("answer", &answer);
  Program program(std::move(registry));
  program.worker("server");
  program.worker("once", [](Worker& worker) {
    EXPECT_EQ(worker.rpc_sync("server", &answer), 1);
    worker.sleep(seconds(6));
  });
  program.worker("often", [](Worker& worker) {
    for (int i = 0; i < 600; ++i) {
      EXPECT_EQ(worker.rpc_sync("server", &answer), 1);
      worker.sleep(milliseconds(10));
    }
  });
  return program;
}

RunReport run(const Program& program, bool forgets, FaultLevel faults = FaultLevel::none) {
  ClusterOptions options{.faults = faults};
  if (forgets)
    options.adjust_node = [](NodeOptions& node) { node.mutants = {"acknowledgement_never_alone"}; };
  Cluster cluster(Seed{1}, program, options);
  return cluster.try_run();
}

TEST(Promptness, IsSilentWhereAllIsAcknowledged) {
  const RunReport report = run(program_of(), /*forgets=*/false);
  EXPECT_TRUE(report.ok) << describe_failure(report);
}

TEST(Promptness, FiresWhereAnAnswerIsNot) {
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  const RunReport report = run(program_of(), /*forgets=*/true);
  ASSERT_FALSE(report.ok);
  EXPECT_EQ(report.failure->oracle, "promptness");
  EXPECT_EQ(report.failure->object, "worker 'once'");
  EXPECT_NE(report.failure->message.find("of worker 'server' for 3."), std::string::npos)
      << report.failure->message;
}

TEST(Promptness, IsSilentWhileFaultsMayHappen) {
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  const RunReport report = run(program_of(), /*forgets=*/true, FaultLevel::mild);
  EXPECT_TRUE(report.ok) << describe_failure(report);
}

}  // namespace
}  // namespace rehearsal::sim
