#include <gtest/gtest.h>

#include "sim/cluster.h"
#include "tests/sim/adding_program.h"

namespace rehearsal::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ClusterOptions calm_without_restart() {
  return {.faults = FaultLevel::none, .restart = Restart::never};
}

TEST(Crash, TheOthersHearOfItWithinThePeerTimeout) {
  const Program program = adding_program();
  Cluster cluster(Seed{1}, program, calm_without_restart());
  ASSERT_TRUE(cluster.run_until([&] { return cluster.node("server").census().executions > 0; }));
  const Instant crash = cluster.now();
  cluster.crash("server");
  EXPECT_FALSE(cluster.alive("server"));
  const RunReport& report = cluster.run();
  EXPECT_EQ(report.crashes, 1u);
  EXPECT_TRUE(report.workers[0].crashed);
  for (const size_t client : {1, 2}) {
    ASSERT_TRUE(report.workers[client].error);
    EXPECT_EQ(report.workers[client].error->kind, ErrorKind::peer_lost);
    EXPECT_EQ(report.workers[client].error->worker, "server");
  }
  EXPECT_LT(Instant{report.virtual_time} - crash, seconds(45));
}

// Goal: where the port of the dead refuses, they are noticed by that, in a second or two; where
// their machine is gone, by their silence. Method: the choice between both is given.
TEST(Crash, APortThatRefusesTellsOfADeathLongBeforeSilenceDoes) {
  const Program program = adding_program();
  for (const bool refuses : {true, false}) {
    ClusterOptions options = calm_without_restart();
    options.overrides = {
        {{.kind = DecisionKind::vacancy, .subject = {WorkerId{0}, 0}}, refuses ? 1u : 0u}};
    Cluster cluster(Seed{1}, program, options);
    ASSERT_TRUE(cluster.run_until([&] { return cluster.node("server").census().executions > 0; }));
    const Instant crash = cluster.now();
    cluster.crash("server");
    const RunReport& report = cluster.run();
    const std::string& text = report.workers[1].error->text;
    const Duration passed = Instant{report.virtual_time} - crash;
    EXPECT_EQ(text.find("worker 'server' has ended: its port refuses connections (") == 0, refuses)
        << text;
    EXPECT_EQ(text.find("worker 'server' was lost: nothing was heard of it for ") == 0, !refuses)
        << text;
    EXPECT_EQ(passed < seconds(4), refuses);
    EXPECT_EQ(passed > seconds(30), !refuses);
  }
}

// Goal: a crash before any event of any worker ends cleanly: nothing hangs, nothing is left.
// Method: a run without crash counts the events; then one run for each of them.
TEST(Crash, EveryDecisionPointOfASmallProgramSurvivesACrash) {
  Program program(adding_functions());
  program.worker("server", [](Worker&) {});
  program.worker("client", [](Worker& worker) {
    RRef<int64_t> sum = worker.remote("server", &add, int64_t{1}, int64_t{2});
    (void)sum.to_here();
    (void)worker.rpc_sync("server", &add, int64_t{1}, int64_t{2});
  });
  Cluster counted(Seed{3}, program, calm_without_restart());
  const RunReport whole = counted.run();
  uint64_t runs = 0;
  uint64_t points = 0;
  for (uint32_t worker = 0; worker < 2; ++worker) {
    points += whole.workers[worker].decisions;
    for (uint64_t point = 0; point < whole.workers[worker].decisions; ++point) {
      ClusterOptions options = calm_without_restart();
      options.crash_points = {{WorkerId{worker}, point}};
      Cluster cluster(Seed{3}, program, options);
      const RunReport& report = cluster.try_run();
      ASSERT_TRUE(report.ok) << "worker " << worker << " point " << point << "\n"
                             << describe_failure(report);
      runs += report.crashes;
    }
  }
  EXPECT_GT(points, 30u);
  EXPECT_EQ(runs, points);
}

// Counts those of its kind that live.
class Guest {
 public:
  explicit Guest(int64_t number) : number_(number) { ++alive(); }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  ~Guest() { --alive(); }
  int64_t add(int64_t by) { return number_ += by; }
  static int64_t& alive() {
    static int64_t count = 0;
    return count;
  }

 private:
  int64_t number_;
};

// Goal: a crash leaves no memory, wherever calls stand that wait for their turn at a value.
// Method: a crash of the owner before each of its events; the value says whether it is gone.
TEST(Crash, LetsGoOfTheCallsThatWaitForAValue) {
  FunctionRegistry registry;
  registry.type<Guest>("Guest").constructor<int64_t>().method("add", &Guest::add);
  Program program(std::move(registry));
  program.worker("server", [](Worker&) {});
  program.worker("client", [](Worker& worker) {
    const auto guest = worker.remote<Guest>("server", int64_t{1});
    std::vector<Future<int64_t>> sums;
    for (int64_t i = 0; i < 8; ++i) sums.push_back(worker.rpc_async(guest, &Guest::add, i));
    worker.when_all(sums).wait();
  });
  uint64_t events = 0;
  {
    Cluster counted(Seed{3}, program, calm_without_restart());
    events = counted.run().workers[0].decisions;
  }
  EXPECT_EQ(Guest::alive(), 0);
  for (uint64_t point = 0; point < events; ++point) {
    ClusterOptions options = calm_without_restart();
    options.crash_points = {{WorkerId{0}, point}};
    {
      Cluster cluster(Seed{3}, program, options);
      const RunReport& report = cluster.try_run();
      ASSERT_TRUE(report.ok) << point << "\n" << describe_failure(report);
    }
    ASSERT_EQ(Guest::alive(), 0) << point;
  }
}

TEST(Crash, ARestartedWorkerIsANewIncarnationAndRunsItsMainAgain) {
  int mains = 0;
  Program program(adding_functions());
  program.worker("server", [](Worker&) {});
  program.worker("client", [&mains](Worker& worker) {
    ++mains;
    for (int64_t i = 0; i < 50; ++i) (void)worker.rpc_sync("server", &add, i, i);
  });
  Cluster cluster(Seed{1}, program, calm_without_restart());
  ASSERT_TRUE(cluster.run_until([&] { return mains == 1; }));
  cluster.advance(milliseconds(1));
  const Incarnation first = cluster.node("client").hello().incarnation;
  cluster.crash("client");
  cluster.restart("client");
  EXPECT_EQ(cluster.life("client"), 1u);
  EXPECT_NE(cluster.node("client").hello().incarnation, first);
  const RunReport& report = cluster.try_run();
  EXPECT_TRUE(report.ok) << describe_failure(report);
  EXPECT_EQ(report.workers[1].lives, 2u);
}

// Asks the server on behalf of its caller.
int64_t ask(CallContext& context, const int64_t& number) {
  return context.rpc_sync("server", &add, number, number);
}

TEST(Crash, WhatASurvivorDoesForTwoLivesOfItsCallerHasDifferentIds) {
  // Goal: the same call of both lives, served by a worker that lives on, makes nested calls of its
  // own. Method: the oracle of at-most-once sees two of one id.
  int answers = 0;
  FunctionRegistry registry = adding_functions();
  registry.function("ask", &ask);
  Program program(std::move(registry));
  program.worker("server", [](Worker&) {});
  program.worker("between", [](Worker&) {});
  program.worker("client", [&answers](Worker& worker) {
    for (int64_t i = 0; i < 3; ++i) answers += worker.rpc_sync("between", &ask, i) == 2 * i ? 1 : 0;
  });
  Cluster cluster(Seed{1}, program, calm_without_restart());
  ASSERT_TRUE(cluster.run_until([&] { return answers == 2; }));
  cluster.crash("client");
  cluster.restart("client");
  const RunReport& report = cluster.try_run();
  EXPECT_TRUE(report.ok) << describe_failure(report);
  EXPECT_EQ(answers, 5);
}

TEST(Crash, WhoComesBackWhenTheGroupHasAgreedToEndIsRefused) {
  // One worker has heard that all may leave, and still waits for an acknowledgement; another has
  // not. The worker that told them comes back: it is not served half-way, and knows why.
  uint64_t refused = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Program program = adding_program();
    ClusterOptions options = calm_without_restart();
    options.faults = FaultLevel::mild;
    Cluster cluster(Seed{seed}, program, options);
    const auto leaving = [&] {
      return cluster.node("client0").waits().others.find("acknowledgements") != std::string::npos;
    };
    if (!cluster.run_until(leaving)) continue;
    if (!cluster.alive("server")) continue;
    cluster.crash("server");
    cluster.restart("server");
    const RunReport& report = cluster.try_run();
    EXPECT_TRUE(report.ok) << "seed " << seed << "\n" << describe_failure(report);
    const Status* const end = cluster.result("server");
    ASSERT_NE(end, nullptr);
    const std::string why = end->ok() ? "" : end->error().text;
    if (why == "worker 'server' came back when the group had shut down") ++refused;
  }
  EXPECT_GT(refused, 10u);
}

TEST(Crash, DrawnCrashesAndRestartsHoldForManySeeds) {
  const Program program = adding_program();
  uint64_t crashes = 0;
  uint64_t restarts = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Cluster cluster(Seed{seed}, program,
                    {.faults = FaultLevel::hostile, .crashes = 2, .restart = Restart::drawn});
    const RunReport& report = cluster.try_run();
    ASSERT_TRUE(report.ok) << "seed " << seed << "\n" << describe_failure(report);
    crashes += report.crashes;
    for (const WorkerReport& worker : report.workers) restarts += worker.lives - 1;
  }
  EXPECT_GT(crashes, 50u);
  EXPECT_GT(restarts, 15u);
}

TEST(Crash, LongPartitionsHoldForManySeeds) {
  const Program program = adding_program();
  uint64_t partitions = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Cluster cluster(Seed{seed}, program, {.long_partitions = true});
    const RunReport& report = cluster.try_run();
    ASSERT_TRUE(report.ok) << "seed " << seed << "\n" << describe_failure(report);
    partitions += report.network.partitions;
  }
  EXPECT_GT(partitions, 10u);
}

TEST(Crash, AMainThatFailsInAWayNoCrashExplainsStillFailsTheRun) {
  Program program(adding_functions());
  program.worker("server", [](Worker&) {});
  program.worker("client", [](Worker& worker) {
    (void)worker.rpc_sync("server", &add, int64_t{1}, int64_t{1});
    throw std::runtime_error("a wrong result");
  });
  program.worker("victim", [](Worker&) {});
  Cluster cluster(Seed{1}, program, calm_without_restart());
  ASSERT_TRUE(cluster.run_until([&] { return cluster.node("server").census().executions > 0; }));
  cluster.crash("victim");
  const RunReport& report = cluster.try_run();
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->oracle, "main");
}

struct Text {
  int64_t size() { return 4; }
};
// Calls when it dies, and lets out what the call throws.
struct CallsAtItsEnd {
  ~CallsAtItsEnd() { text.rpc_sync(&Text::size); }
  RRef<Text> text;
};
int64_t hold_on(CallContext& context, const RRef<Text>& rref) {
  const CallsAtItsEnd calls{rref};
  context.sleep(seconds(5));
  return 1;
}

TEST(Crash, DestructorsThatCallEndTheirStackAndNothingElse) {
  // Goal: neither the death of a worker nor the end of a run that has failed ends the process.
  // Method: both while a function holds what calls when it dies, and while that waits.
  FunctionRegistry registry;
  registry.function("hold_on", &hold_on);
  registry.type<Text>("Text").method("size", &Text::size);
  Program program(std::move(registry));
  program.worker("server").worker("client", [](Worker& worker) {
    const RRef<Text> text = worker.rref(Text());
    if (worker.rpc_sync("server", &hold_on, text) == 1) throw std::logic_error("it failed");
  });
  const auto held = [](Cluster& cluster) { return cluster.node("server").census().executions > 0; };
  for (const Duration wait : {Duration(seconds(1)), Duration(seconds(5))}) {
    Cluster cluster(Seed{1}, program, calm_without_restart());
    ASSERT_TRUE(cluster.run_until([&] { return held(cluster); }));
    cluster.advance(wait);
    cluster.crash("server");
    EXPECT_EQ(cluster.try_run().crashes, 1u);
  }
  Cluster cluster(Seed{1}, program, calm_without_restart());
  EXPECT_EQ(cluster.try_run().failure->oracle, "main");
}

// The same, as a value that a worker holds.
class Caller {
 public:
  explicit Caller(const RRef<Text>& text) : text_(text) {}
  Caller(Caller&&) noexcept = default;
  Caller& operator=(Caller&&) = delete;
  ~Caller() {
    if (text_.valid()) text_.rpc_sync(&Text::size);
  }

 private:
  RRef<Text> text_;
};

TEST(Crash, WhatADeadWorkerHasHeldMayCallAsItEnds) {
  // Goal: what is left of a worker, dead or failed, ends with its stack and nothing else. Method: a
  // value that its main holds and a state, both of which call as they end and let out what the
  // call throws; a crash, and a main that fails.
  FunctionRegistry registry;
  registry.type<Text>("Text").constructor<>().method("size", &Text::size);
  registry.type<Caller>("Caller");
  std::optional<RRef<Caller>> held;
  for (const bool fails : {false, true}) {
    Program program(registry);
    program.worker("server")
        .worker("client",
                [&](Worker& worker) {
                  held = worker.rref(Caller(worker.remote<Text>("server")));
                  worker.sleep(seconds(5));
                  if (fails) throw std::logic_error("it failed");
                })
        .state<CallsAtItsEnd>([](Worker& worker) { return CallsAtItsEnd{worker.rref(Text())}; });
    {
      Cluster cluster(Seed{1}, program, calm_without_restart());
      ASSERT_TRUE(cluster.run_until([&] { return held.has_value(); }))
          << describe_failure(cluster.try_run());
      if (!fails) cluster.crash("client");
      EXPECT_EQ(cluster.try_run().ok, !fails);
    }
    held.reset();
  }
}

}  // namespace
}  // namespace rehearsal::sim
