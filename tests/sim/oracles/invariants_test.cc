#include <gtest/gtest.h>

#include "core/api/worker.h"
#include "core/base/mutants.h"
#include "sim/cluster.h"

namespace rehearsal::sim {
namespace {

int64_t make(int64_t number) { return number; }
int64_t read(const RRef<int64_t>& reference) { return reference.to_here(); }

// A user lends its reference to a borrower: it keeps its own until the owner knows the other.
Program lending() {
  FunctionRegistry registry;
  registry.function("make", &make).function("read", &read);
  Program program(std::move(registry));
  program.worker("owner", [](Worker&) {});
  program.worker("borrower", [](Worker&) {});
  program.worker("user", [](Worker& worker) {
    const RRef<int64_t> reference = worker.remote("owner", &make, int64_t{5});
    (void)worker.rpc_async("borrower", &read, reference).result();
  });
  return program;
}

RunReport run(std::vector<CrashPoint> crashes, std::vector<std::string> mutants) {
  const Program program = lending();
  Cluster cluster(Seed{1}, program,
                  {.faults = FaultLevel::none,
                   .restart = Restart::never,
                   .crash_points = std::move(crashes),
                   .adjust_node = [mutants](NodeOptions& node) { node.mutants = mutants; }});
  return cluster.try_run();
}

constexpr WorkerId kBorrower{1};

TEST(Invariants, AreSilentWhereverTheBorrowerCrashes) {
  const uint64_t events = run({}, {}).workers[kBorrower.value].decisions;
  ASSERT_GT(events, 10u);
  for (uint64_t event = 0; event < events; ++event) {
    const RunReport report = run({{kBorrower, event}}, {});
    EXPECT_TRUE(report.ok) << event << ": " << report.failure->message;
  }
}

TEST(Invariants, FireWhereATableSaysWhatAnotherDenies) {
  // Goal: the worker and the entry are named. Method: a rule is left out, so that a reference stays
  // pinned for a borrower that is lost; a crash of it before each of its events.
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  const uint64_t events = run({}, {}).workers[kBorrower.value].decisions;
  uint64_t found = 0;
  for (uint64_t event = 0; event < events; ++event) {
    const RunReport report = run({{kBorrower, event}}, {"pins_survive_fencing"});
    if (report.ok) continue;
    EXPECT_EQ(report.failure->oracle, "invariants");
    EXPECT_EQ(report.failure->object, "worker 'user'");
    EXPECT_NE(report.failure->message.find("pins its parent for the lost worker 'borrower'"),
              std::string::npos)
        << report.failure->message;
    ++found;
  }
  EXPECT_GT(found, 0u);
}

}  // namespace
}  // namespace rehearsal::sim
