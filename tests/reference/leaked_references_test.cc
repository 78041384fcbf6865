// Goal: a reference that is still held when its worker shuts down is told with its holder, and is a
// failure where that is asked for: in the simulator unless it is allowed, over TCP if it is strict.
// Method: PyTorch runs its own tests so (ignore_rref_leak=False); globals, cycles, and chains that
// are none.
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "observe/log/log.h"
#include "tests/reference/row.h"

namespace rehearsal::reference::leaked_references_test {
namespace {

// A value that may refer to another of its kind.
struct Part {
  void link(const RRef<Part>& to) { next = to; }
  int64_t length(CallContext& context) {
    return next.valid() ? 1 + context.rpc_sync(next, &Part::length) : 1;
  }
  RRef<Part> next;
};

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.type<Part>("Part")
      .constructor<>()
      .method("link", &Part::link)
      .method("length", &Part::length);
  return registry;
}

// Its main keeps a reference to a value of worker1 for longer than it runs.
Program keeping(std::optional<RRef<Part>>& kept) {
  return one_caller(functions(), [&kept](Worker& worker) {
    kept = worker.remote<Part>("worker1");
    EXPECT_EQ(kept->rpc_sync(&Part::length), 1);
  });
}

// Two values refer to each other, and nobody else to them.
void make_cycle(Worker& worker) {
  const RRef<Part> one = worker.remote<Part>("worker1");
  const RRef<Part> other = worker.remote<Part>("worker2");
  one.rpc_sync(&Part::link, other);
  other.rpc_sync(&Part::link, one);
}

// One refers to the next, twice round all workers.
void make_chain(Worker& worker) {
  std::optional<RRef<Part>> first;
  for (uint32_t i = 0; i < 6; ++i) {
    const RRef<Part> made = worker.remote<Part>(after(worker, i));
    if (first) made.rpc_sync(&Part::link, *first);
    first = made;
  }
  EXPECT_EQ(first->rpc_sync(&Part::length), 6);
}

sim::RunReport simulated(const Program& program, const sim::ClusterOptions& options = {}) {
  sim::Cluster cluster(Seed{1}, program, options);
  return cluster.try_run();
}

constexpr const char* kKept =
    "'worker0' holds a reference to a value of 'worker1', made by remote of 'Part()' in "
    "'worker0': ";

TEST(ReferenceLeaks, AGlobalFailsASimulatedRunAndIsNamed) {
  std::optional<RRef<Part>> kept;
  const sim::RunReport report = simulated(keeping(kept));
  ASSERT_FALSE(report.ok);
  EXPECT_EQ(report.failure->oracle, "leaked references");
  EXPECT_EQ(report.failure->object, "worker 0");
  EXPECT_TRUE(report.failure->message.starts_with(kKept)) << report.failure->message;
  EXPECT_TRUE(contains(report.failure->message, "let it go before the main returns"));
}

TEST(ReferenceLeaks, AllowedTheyAreInTheReport) {
  std::optional<RRef<Part>> kept;
  const sim::RunReport report = simulated(keeping(kept), {.strict_leaks = false});
  EXPECT_TRUE(report.ok) << sim::describe_failure(report);
  ASSERT_EQ(report.leaks.size(), 1u);
  EXPECT_TRUE(report.leaks[0].starts_with(kKept)) << report.leaks[0];
  EXPECT_TRUE(contains(sim::describe_failure(report), "  leak: 'worker0' holds"));
}

TEST(ReferenceLeaks, ACycleIsToldByTheWorkerThatLetsGoOfItFirst) {
  // With the first reference the others go by themselves.
  const Program program = one_caller(functions(), &make_cycle, 2);
  EXPECT_EQ(simulated(program).failure->oracle, "leaked references");
  const sim::RunReport report = simulated(program, {.strict_leaks = false});
  ASSERT_EQ(report.leaks.size(), 1u);
  const std::string& leak = report.leaks[0];
  EXPECT_TRUE(contains(leak, "holds a reference to a value of 'worker")) << leak;
  EXPECT_TRUE(contains(leak, ", which came from 'worker0': ")) << leak;
}

TEST(ReferenceLeaks, AValueOfOnesOwnAndAnAutogradContextCountToo) {
  std::optional<RRef<int64_t>> number;
  std::optional<AutogradContext> context;
  const Program program = one_caller(functions(), [&](Worker& worker) {
    number = worker.rref<int64_t>(5);
    context = worker.autograd_context();
  });
  const sim::RunReport report = simulated(program, {.strict_leaks = false});
  ASSERT_EQ(report.leaks.size(), 2u);
  EXPECT_TRUE(contains(report.leaks[0], "'worker0' holds autograd context ")) << report.leaks[0];
  EXPECT_TRUE(report.leaks[1].starts_with(
      "'worker0' holds a reference to a value of its own, made by rref in 'worker0': "))
      << report.leaks[1];
}

// The lines of a log that tell of a reference, without their times.
std::vector<std::string> told_leaks(const std::ostringstream& log) {
  std::istringstream text(log.str());
  std::vector<std::string> told;
  for (std::string line; std::getline(text, line);)
    if (contains(line, "event=reference_leaked")) told.push_back(line.substr(line.find(' ') + 1));
  return told;
}

TEST(ReferenceLeaks, OverTheNetworkTheyAreToldAndFailTheirHolderIfItIsStrict) {
  for (const bool strict : {true, false}) {
    SCOPED_TRACE(strict ? "strict" : "not strict");
    std::optional<RRef<Part>> kept;
    const Program program = keeping(kept);
    std::ostringstream holders, owners;
    observe::Log holders_log(observe::LogLevel::warn, "worker0", holders);
    observe::Log owners_log(observe::LogLevel::warn, "worker1", owners);
    observe::LogTrace holders_trace(holders_log, program.names());
    observe::LogTrace owners_trace(owners_log, program.names());
    real::GroupOptions options;
    options.node.strict_leaks = strict;
    options.traces = {&holders_trace, &owners_trace};
    real::LoopbackGroup group(program, options);
    const std::vector<Status> ends = group.run();
    const std::vector<std::string> told = told_leaks(holders);
    ASSERT_EQ(told.size(), 1u) << holders.str();
    EXPECT_TRUE(told[0].starts_with(
        std::string("level=warning worker=worker0 event=reference_leaked which=\"") + kKept))
        << told[0];
    EXPECT_TRUE(told_leaks(owners).empty()) << owners.str();
    EXPECT_TRUE(ends[1].ok());
    ASSERT_EQ(ends[0].ok(), !strict);
    if (!strict) continue;
    EXPECT_EQ(ends[0].error().kind, ErrorKind::rref_leaked);
    EXPECT_EQ(ends[0].error().worker, "worker0");
    EXPECT_TRUE(contains(ends[0].error().text, kKept)) << ends[0].error().text;
  }
}

TEST(ReferenceLeaks, AChainThatEndsWithItsMainIsNone) {
  // Each value is dropped by the one before it, one worker after another, in the shutdown: nothing
  // of it is taken for a leak, under any faults, and at no speed.
  const Program program = everywhere(functions(), &make_chain, 3);
  sim::HuntOptions hunt;
  hunt.seeds = 200;
  hunt.cluster.faults = sim::FaultLevel::hostile;
  EXPECT_TRUE(sim::hunt(hunt, [&](Seed seed, const sim::ClusterOptions& options) {
    sim::Cluster cluster(seed, program, options);
    cluster.run();
  }));
  for (int round = 0; round < 10; ++round) over_loopback(program);
}

}  // namespace
}  // namespace rehearsal::reference::leaked_references_test
