#include "sim/cluster.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <sstream>

#include "core/api/worker.h"
#include "core/fibers/stack_pool.h"
#include "core/wire/message.h"
#include "sim/oracles/quiet_oracle.h"
#include "sim/world/event_lines.h"
#include "tests/sim/adding_program.h"

namespace rehearsal::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Cluster, AProgramRunsToItsEnd) {
  const Program program = adding_program();
  Cluster cluster(Seed{42}, program);
  const RunReport& report = cluster.run();
  EXPECT_TRUE(report.ok);
  EXPECT_EQ(report.calls, 40u);
  EXPECT_GE(report.messages, 80u);
  EXPECT_EQ(report.workers.size(), 3u);
  EXPECT_GT(report.virtual_seconds(), 0.0);
  EXPECT_GT(report.decisions, 160u);
  EXPECT_EQ(report.fingerprint.size(), 32u);
}

// P2: method: the same run twice, with the heap in another state in between.
TEST(Cluster, TheSameSeedGivesTheSameFingerprintAndAnotherSeedAnother) {
  const Program program = adding_program();
  const auto fingerprint = [&program](uint64_t seed) {
    Cluster cluster(Seed{seed}, program, {.faults = FaultLevel::hostile});
    return cluster.run().fingerprint;
  };
  std::vector<std::unique_ptr<char[]>> garbage;
  std::set<std::string> all;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const std::string first = fingerprint(seed);
    garbage.push_back(std::make_unique<char[]>(1000 * seed + 13));
    EXPECT_EQ(first, fingerprint(seed)) << seed;
    all.insert(first);
  }
  EXPECT_EQ(all.size(), 10u);
}

TEST(Cluster, ARunIsRepeatedByItsChoicesWithoutItsSeed) {
  // Goal: a failure is the set of choices that are not benign. Method: record them, and give them
  // to a run in which nothing is drawn.
  const Program program = adding_program();
  const auto run = [&program](ClusterOptions options) {
    options.faults = FaultLevel::hostile;
    options.crashes = 1;
    options.strategy = StrategyKind::pct;
    Cluster cluster(Seed{7}, program, std::move(options));
    return cluster.try_run();
  };
  const RunReport drawn = run({.record_choices = true});
  ASSERT_GT(drawn.choices.size(), 20u);
  const RunReport given = run({.overrides = drawn.choices, .otherwise = Otherwise::benign});
  EXPECT_EQ(given.fingerprint, drawn.fingerprint);
  EXPECT_EQ(given.draws, drawn.draws);
  EXPECT_TRUE(given.absent_overrides.empty());
  EXPECT_TRUE(given.choices.empty());
  const RunReport benign = run({.otherwise = Otherwise::benign, .record_choices = true});
  EXPECT_TRUE(benign.choices.empty());
  EXPECT_NE(benign.fingerprint, drawn.fingerprint);
}

TEST(Cluster, EventLinesOfTheSameSeedAreEqual) {
  const Program program = adding_program();
  const auto lines = [&program](uint64_t seed) {
    std::ostringstream out;
    Cluster cluster(Seed{seed}, program, {.event_lines = &out});
    cluster.run();
    return out.str();
  };
  std::istringstream first(lines(3));
  std::istringstream again(lines(3));
  EXPECT_FALSE(first_difference(first, again));
  EXPECT_NE(lines(3), lines(4));
  EXPECT_NE(lines(3).find(" api_call peer=server "), std::string::npos);
}

// Goal: watching changes nothing.
TEST(Cluster, OraclesAndTracesDoNotChangeARun) {
  const Program program = adding_program();
  std::ostringstream out;
  Cluster watched(Seed{5}, program, {.event_lines = &out});
  Cluster alone(Seed{5}, program, {.oracles = false});
  EXPECT_EQ(watched.run().fingerprint, alone.run().fingerprint);
}

TEST(Cluster, AFailedMainFailsTheRunAndTheLastLineRepeatsIt) {
  Program program(adding_functions());
  program.worker("server", [](Worker&) {});
  program.worker("client", [](Worker&) { throw std::runtime_error("a wrong result"); });
  Cluster cluster(Seed{7}, program, {.reproduction = "rehearsal run adding --seed 7"});
  try {
    cluster.run();
    FAIL() << "the run did not fail";
  } catch (const RunFailed& failed) {
    const std::string text = failed.what();
    EXPECT_NE(text.find("a wrong result"), std::string::npos) << text;
    EXPECT_NE(text.find("oracle 'main' failed on worker 'client'"), std::string::npos) << text;
    EXPECT_EQ(text.substr(text.rfind('\n') + 1), "rehearsal run adding --seed 7");
    EXPECT_FALSE(failed.report().ok);
  }
}

TEST(Cluster, AWaitThatNeverEndsFailsByProgressAndIsNamed) {
  Program program(adding_functions());
  program.worker("server", [](Worker&) {});
  program.worker("client", [](Worker& worker) {
    const Promise<int64_t> never = worker.promise<int64_t>();
    (void)never.future().wait();
  });
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none, .storm = seconds(1)});
  const RunReport& report = cluster.try_run();
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->oracle, "progress");
  EXPECT_NE(report.failure->object.find("client"), std::string::npos);
  EXPECT_NE(report.failure->message.find("waits for"), std::string::npos)
      << report.failure->message;
}

TEST(Cluster, ARunThatIsTooLongFails) {
  const Program program = adding_program();
  Cluster cluster(Seed{1}, program, {.virtual_time_max = milliseconds(1)});
  const RunReport& report = cluster.try_run();
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->oracle, "time");
}

TEST(Cluster, AUsersOwnOracleIsAsked) {
  class NoMoreThanThreeCalls final : public QuietOracle {
   public:
    std::string_view name() const override { return "three calls"; }
    void on_event(const Observation& seen, Findings& findings) override {
      if (seen.event.kind == EventKind::call_executed && ++calls_ > 3)
        findings.fail(name(), "the cluster", "a fourth call");
    }

   private:
    int calls_ = 0;
  };
  const Program program = adding_program();
  Cluster cluster(Seed{1}, program);
  cluster.add_oracle(std::make_unique<NoMoreThanThreeCalls>());
  const RunReport& report = cluster.try_run();
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->oracle, "three calls");
  EXPECT_EQ(report.calls, 4u);
}

// Goal: a rule by message type reaches the frames it means. Method: the first answer is cut; the
// session resends it, and the sum is right.
TEST(Cluster, ACutResponseIsResent) {
  const Program program = adding_program();
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  int cuts = 0;
  const auto guard = cluster.network().rule([&cuts](const net_fake::FrameView& frame) {
    if (message_name(frame.message_type) != "Response" || cuts > 0) return net_fake::Action::pass();
    ++cuts;
    return net_fake::Action::cut();
  });
  const RunReport& report = cluster.run();
  EXPECT_EQ(cuts, 1);
  EXPECT_EQ(report.network.losses, 1u);
  EXPECT_EQ(report.calls, 40u);
}

TEST(Cluster, AnOverrideThatNeverComesUpIsReported) {
  const Program program = adding_program();
  const Override used = parse_override("swarm:#64.0=2");
  const Override unused = parse_override("cut:9.0>8.0#7.0=1");
  Cluster cluster(Seed{1}, program, {.overrides = {used, unused}});
  EXPECT_EQ(cluster.run().absent_overrides, std::vector<std::string>{"cut:9.0>8.0#7.0"});
}

// Looking inside.

TEST(Cluster, ATestCanStopARunAndLookAtItsNodes) {
  Program program(adding_functions());
  program.worker("server", [](Worker&) {});
  program.worker("client", [](Worker& worker) {
    RRef<int64_t> sum = worker.remote("server", &add, int64_t{20}, int64_t{22});
    if (sum.to_here() != 42) throw std::logic_error("wrong sum");
    worker.rpc_sync("server", &add, int64_t{1}, int64_t{1});
  });
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  ASSERT_TRUE(cluster.run_until([&] { return cluster.node("server").census().owners == 1; }));
  EXPECT_TRUE(cluster.alive("client"));
  EXPECT_EQ(cluster.result("client"), nullptr);
  EXPECT_FALSE(cluster.run_until([] { return false; }, milliseconds(0)));
  cluster.run();
  EXPECT_EQ(cluster.node("server").census().owners, 0u);
  EXPECT_TRUE(cluster.result("client")->ok());
}

TEST(Cluster, ActionsHappenAtTheirTime) {
  const Program program = adding_program();
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  std::vector<Instant> times;
  cluster.at(milliseconds(3), [&] { times.push_back(cluster.now()); });
  cluster.at(milliseconds(1), [&] {
    times.push_back(cluster.now());
    cluster.network().reset("server", "client0");
  });
  const RunReport& report = cluster.run();
  EXPECT_EQ(times, (std::vector<Instant>{Instant{milliseconds(1)}, Instant{milliseconds(3)}}));
  EXPECT_EQ(report.network.losses, 1u);
}

TEST(Cluster, QuietMeansThatOnlyHeartbeatsAreLeft) {
  Program program(adding_functions());
  program.worker("server", [](Worker&) {});
  program.worker("client", [](Worker& worker) {
    worker.rpc_sync("server", &add, int64_t{1}, int64_t{1});
    const Promise<int64_t> never = worker.promise<int64_t>();
    (void)never.future().wait();
  });
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  cluster.run_until_quiet();
  EXPECT_EQ(cluster.node("client").census().unacknowledged, 0u);
  EXPECT_EQ(cluster.node("server").census().executions, 0u);
  EXPECT_LT(cluster.now().time_since_epoch(), seconds(1));
}

// Goal: what a run needs does not grow with its length.
TEST(Cluster, ALongRunUsesItsStacksAgain) {
  constexpr int64_t kCalls = 5'000;
  Program program(adding_functions());
  program.worker("server", [](Worker&) {});
  program.worker("client", [](Worker& worker) {
    int64_t sum = 0;
    for (int64_t i = 0; i < kCalls; ++i) sum = worker.rpc_sync("server", &add, sum, i);
    if (sum != kCalls * (kCalls - 1) / 2) throw std::logic_error("wrong sum");
  });
  fibers::StackPool stacks;
  Cluster cluster(Seed{1}, program,
                  {.faults = FaultLevel::none, .oracles = false, .stacks = &stacks});
  EXPECT_EQ(cluster.run().calls, static_cast<uint64_t>(kCalls));
  EXPECT_EQ(stacks.live(), 0u);
  EXPECT_LE(stacks.idle(), 4u);
}

// Goal: a cluster may be given up at any point, and leaves nothing behind. (Destructors check.)
TEST(Cluster, AClusterCanBeDestroyedInTheMiddleOfARun) {
  const Program program = adding_program();
  for (int events = 0; events < 200; events += 7) {
    Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
    int left = events;
    (void)cluster.run_until([&left] { return left-- == 0; });
  }
}

}  // namespace
}  // namespace rehearsal::sim
