// Goal: a shutdown waits for all that is still going on, for as long as it is given, and no longer.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/worker.h"
#include "core/base/mutants.h"
#include "sim/cluster.h"

namespace rehearsal::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int* worked = nullptr;

int64_t work(CallContext& context) {
  context.sleep(milliseconds(100));
  ++*worked;
  return 0;
}

// Answers at once, and nobody waits for what it calls.
int64_t set_going(CallContext& context) {
  static_cast<void>(context.rpc_async("c", &work));
  return 0;
}

int64_t oversleep(CallContext& context) {
  context.sleep(seconds(50));
  return 0;
}

// A state that takes ten seconds to end.
class EndsSlowly {
 public:
  explicit EndsSlowly(Worker& worker) : here_(worker) {}
  ~EndsSlowly() { here_.sleep(seconds(10)); }

 private:
  const WorkerAccess here_;
};

std::vector<RRef<int64_t>>* kept = nullptr;
std::vector<std::string>* refused = nullptr;

int64_t four() { return 4; }

std::vector<int64_t>* used = nullptr;

void use_slowly(CallContext& context, const RRef<int64_t>& value) {
  context.sleep(seconds(3));
  used->push_back(value.to_here());
}

void publish_late(CallContext& context) {
  try {
    context.publish("late", context.rref<int64_t>(1));
  } catch (const RpcError& error) {
    refused->push_back(to_string(error.error()));
  }
  context.unpublish("late");
}

class Shutdown : public ::testing::Test {
 protected:
  void SetUp() override { worked = &worked_; }
  void TearDown() override { worked = nullptr; }

  // a calls b, which calls c; then all mains are at their ends.
  RunReport run_nested(const std::vector<std::string>& mutants) {
    FunctionRegistry registry;
    registry.function("work", &work).function("set_going", &set_going);
    Program program(std::move(registry));
    program.worker("a", [](Worker& worker) { worker.rpc_sync("b", &set_going); });
    program.worker("b").worker("c");
    ClusterOptions options;
    options.adjust_node = [&mutants](NodeOptions& node) { node.mutants = mutants; };
    Cluster cluster(Seed{1}, program, options);
    return cluster.try_run();
  }

  // Every frame takes three seconds, so that a shutdown takes far longer than five.
  static RunReport run_slowly(const std::vector<std::string>& mutants) {
    Program program{FunctionRegistry()};
    program.worker("a").worker("b");
    ClusterOptions options;
    options.adjust_node = [&mutants](NodeOptions& node) { node.mutants = mutants; };
    Cluster cluster(Seed{1}, program, options);
    cluster.network().between("a", "b").delay(seconds(3), seconds(3));
    return cluster.try_run();
  }

  int worked_ = 0;
};

TEST_F(Shutdown, WaitsForWhatServedFunctionsHaveCalled) {
  const RunReport report = run_nested({});
  EXPECT_TRUE(report.ok) << describe_failure(report);
  EXPECT_EQ(worked_, 1);
}

TEST_F(Shutdown, ThatWaitsForMainsOnlyCutsThemOff) {
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  const RunReport report = run_nested({"shutdown_counts_own_calls_only"});
  ASSERT_FALSE(report.ok);
  EXPECT_EQ(report.failure->oracle, "no leak");
  EXPECT_EQ(worked_, 0);
}

TEST_F(Shutdown, ThatRunsOutOfTimeSaysWhatIsLeft) {
  FunctionRegistry registry;
  registry.function("oversleep", &oversleep);
  Program program(std::move(registry));
  program.worker("a", [](Worker& worker) { static_cast<void>(worker.rpc_async("b", &oversleep)); });
  program.worker("b");
  ClusterOptions options;
  options.adjust_node = [](NodeOptions& node) { node.shutdown_timeout = seconds(10); };
  Cluster cluster(Seed{1}, program, options);
  const RunReport report = cluster.try_run();
  ASSERT_FALSE(report.ok);
  const std::string& text = report.failure->message;
  EXPECT_NE(text.find("missing or busy: 'a' (1 unanswered call) 'b'"), std::string::npos) << text;
}

TEST_F(Shutdown, TakesAsLongAsItNeedsWithinWhatItIsGiven) {
  const RunReport report = run_slowly({});
  EXPECT_TRUE(report.ok) << describe_failure(report);
}

TEST_F(Shutdown, OfFiveSecondsFailsWhereMessagesAreSlow) {
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  const RunReport report = run_slowly({"shutdown_has_five_seconds"});
  ASSERT_FALSE(report.ok);
  EXPECT_NE(report.failure->message.find("has not finished in time"), std::string::npos)
      << report.failure->message;
}

TEST_F(Shutdown, WhatAContinuationMakesWhenAllElseIsReleasedIsReleasedToo) {
  // Goal: it ends, and says what it had to release. Method: while b's state ends, for ten seconds,
  // a timer wakes a continuation at a, which keeps a reference to a value of c's and has a name
  // published.
  std::vector<RRef<int64_t>> references;
  std::vector<std::string> errors;
  kept = &references;
  refused = &errors;
  FunctionRegistry registry;
  registry.function("four", &four).function("publish_late", &publish_late);
  Program program(std::move(registry));
  program.worker("a", [](Worker& worker) {
    const WorkerAccess here = worker;
    static_cast<void>(here.after(seconds(5)).then([here](Unit) {
      kept->push_back(here.remote("c", &four));
      return here.rpc_async("a", &publish_late);
    }));
  });
  program.worker("b").state<EndsSlowly>([](Worker& worker) { return EndsSlowly(worker); });
  program.worker("c");
  ClusterOptions options;
  options.strict_leaks = false;
  Cluster cluster(Seed{1}, program, options);
  const RunReport& report = cluster.try_run();
  EXPECT_TRUE(report.ok) << describe_failure(report);
  EXPECT_EQ(references.size(), 1u);
  EXPECT_EQ(errors, std::vector<std::string>{"peer_lost at 'a': worker 'a' shuts down, and "
                                             "publishes nothing any more"});
  EXPECT_EQ(report.leaks.size(), 1u);
  kept = nullptr;
  refused = nullptr;
}

TEST_F(Shutdown, AFunctionThatAContinuationBeginsKeepsItsReferencesForAsLongAsItRuns) {
  // Goal: nothing that runs loses what it uses. Method: while b's state ends, for ten seconds, a
  // timer wakes a continuation at a, which has a function run there for three seconds that uses a
  // value of c's, and has c look at another one for as long.
  std::vector<int64_t> seen;
  used = &seen;
  FunctionRegistry registry;
  registry.function("four", &four).function("use_slowly", &use_slowly);
  Program program(std::move(registry));
  program.worker("a", [](Worker& worker) {
    const WorkerAccess here = worker;
    static_cast<void>(here.after(seconds(5)).then([here](Unit) {
      const RRef<int64_t> value = here.remote("a", &four);
      static_cast<void>(here.rpc_async("c", &use_slowly, value).then([value](const Unit&) {
        return value.to_here_async().then([](int64_t four) { used->push_back(four); });
      }));
      return here.rpc_async("a", &use_slowly, here.remote("c", &four));
    }));
  });
  program.worker("b").state<EndsSlowly>([](Worker& worker) { return EndsSlowly(worker); });
  program.worker("c");
  Cluster cluster(Seed{1}, program, {});
  const RunReport& report = cluster.try_run();
  EXPECT_TRUE(report.ok) << describe_failure(report);
  EXPECT_EQ(seen, (std::vector<int64_t>{4, 4, 4}));
  used = nullptr;
}

TEST_F(Shutdown, ACallThatIsMadeWhenAllHaveBeenToldToGoFailsAtOnce) {
  // Goal: nothing is left at the end. Method: a timer of the worker that tells them wakes a
  // continuation that calls, at many moments of a shutdown in which each frame takes three seconds.
  uint64_t failed = 0;
  FunctionRegistry registry;
  registry.function("four", &four);
  for (int64_t moment = 1; moment <= 120; ++moment) {
    Program program(registry);
    program.worker("a", [&failed, moment](Worker& worker) {
      const WorkerAccess here = worker;
      static_cast<void>(here.after(milliseconds(500 * moment)).then([here, &failed](Unit) {
        return here.rpc_async("b", &four).then([&failed](const Result<int64_t>& result) {
          if (result.ok()) return;
          EXPECT_EQ(to_string(result.error()),
                    "node_stopped at 'a' in four: worker 'a' has shut down, and calls nobody");
          ++failed;
        });
      }));
    });
    program.worker("b");
    Cluster cluster(Seed{1}, program, {});
    cluster.network().between("a", "b").delay(seconds(3), seconds(3));
    const RunReport& report = cluster.try_run();
    EXPECT_TRUE(report.ok) << "moment " << moment << ": " << describe_failure(report);
  }
  EXPECT_GT(failed, 0u);
}

}  // namespace
}  // namespace rehearsal::sim
