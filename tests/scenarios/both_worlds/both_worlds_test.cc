#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "core/base/mutants.h"
#include "tests/effort.h"
#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"

namespace rehearsal::command_line {
namespace {

class SameBits : public testing::TestWithParam<const char*> {};

TEST_P(SameBits, InTheSimulatorAndOverTcp) {
  // Goal: the same seed gives the same bits in both worlds. Method: one run in each, as processes,
  // compared by the tool itself and by the digest.
  const std::string arguments = std::string(GetParam()) + " --seed 3 --json";
  const ToolRun simulated = run_tool("run " + arguments + " --faults hostile --crashes 0" +
                                     " --partitions short --pauses short");
  ASSERT_EQ(simulated.status, 0) << simulated.err;
  const TemporaryFolder folder;
  const std::string file = folder.file("simulated.json");
  std::ofstream(file) << simulated.out;
  const ToolRun real = run_tool("run " + arguments + " --net tcp --compare " + file);
  EXPECT_EQ(real.status, 0) << real.err;
  EXPECT_EQ(real.json()["result_digest"], simulated.json()["result_digest"]);
  EXPECT_EQ(real.json()["results"], simulated.json()["results"]);
  EXPECT_GT(real.json()["calls"], 0);
  EXPECT_GT(real.json()["messages"], 0);
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, SameBits,
    testing::Values("quickstart --set size=tiny", "rnn --set size=tiny",
                    "rnn --set size=tiny --set world_size=4", "rnn --set epochs=1 --set layers=2",
                    "rl --set size=tiny --set observers=3", "rl --set episodes=3",
                    "barcode --set size=tiny", "traps", "random_model --set size=tiny",
                    "random_model", "random_training --set steps=3",
                    "parameter_server --set size=tiny",
                    "parameter_server --set batches=20",
                    "parameter_server --set size=tiny --set trainers=3",
                    "batch_parameter_server --set size=tiny", "batch_parameter_server",
                    "batch_rl --set size=tiny --set observers=3", "batch_rl --set episodes=2",
                    "pipeline --set size=tiny",
                    "pipeline --set stages=4 --set steps=2 --set channels=4 --set side=8",
                    "pipeline --set schedule=zero_bubble --set steps=1", "ddp_rpc --set size=tiny",
                    "ddp_rpc --set epochs=5", "recovery --set size=tiny", "storm --set size=tiny",
                    "rnn --set size=tiny --devices 2", "pipeline --set size=tiny --devices 3",
                    "parameter_server --set size=tiny --devices 2",
                    "batch_parameter_server --set size=tiny --devices 3",
                    "rl --set size=tiny --devices 1", "batch_rl --set size=tiny --devices 2",
                    "ddp_rpc --set size=tiny --devices 2", "recovery --set size=tiny --devices 2",
                    "random_model --devices 3", "storm --set size=tiny --devices 2"));

TEST(Verify, FindsNothingInTheScenarios) {
  // Goal: a run is a function of its seed. Method: a seed of each, twice.
  for (const char* name :
       {"quickstart", "rnn", "rl", "barcode", "traps", "parameter_server",
        "parameter_server --set trainers=3", "batch_parameter_server", "batch_rl --set episodes=3",
        "pipeline", "ddp_rpc --set epochs=2", "recovery --set size=tiny"}) {
    const ToolRun run = run_tool("verify --seeds " + std::to_string(tries(1)) + " " + name);
    EXPECT_EQ(run.status, 0) << run.out << run.err;
  }
}

TEST(Hunt, CrashesAreSurvived) {
  // Goal: a crash ends the others with an error, and nothing leaks. Method: some seeds of each.
  const ToolRun run = run_tool("hunt quickstart rnn rl --seeds 10 --crashes 1 --faults hostile");
  EXPECT_EQ(run.status, 0) << run.out << run.err;
}

TEST(Hunt, WorkersThatComeBackReportAgain) {
  // Goal: a worker in a later life runs its main to its end, results and all. Method: crashes after
  // which it comes back, in a scenario of which one seed in eight failed when the second report was
  // refused, and a few seeds of all others, of which .ci/run hunts many.
  const std::string flags = " --set size=tiny --faults hostile --crashes 1 --restarts drawn";
  for (const char* names :
       {"quickstart --set steps=1 --seeds 100",
        "rnn rl barcode random_model storm rref_fork traps parameter_server "
        "batch_parameter_server batch_rl pipeline ddp_rpc recovery --seeds 4"}) {
    const ToolRun run = run_tool(std::string("hunt ") + names + flags);
    EXPECT_EQ(run.status, 0) << run.out << run.err;
  }
}

TEST(Hunt, ACrashBeforeAnyEventEndsEveryWorkerOfEveryScenario) {
  // Goal: the others end with an error, nothing is left. Method: every decision point of one seed.
  const ToolRun run = run_tool("hunt quickstart rnn rl storm --crash-sweep --seeds 1 --json");
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_GT(run.json()["runs"], 600);
}

TEST(Hunt, SaysWhatEachStrategyWasGiven) {
  const Json json = run_tool("hunt storm --seeds 200 --json").json();
  uint64_t runs = 0;
  for (const auto& [strategy, spent] : json.at("strategies").items()) {
    runs += spent.at("runs").get<uint64_t>();
    EXPECT_GT(spent.at("decisions").get<uint64_t>(), 0u) << strategy;
  }
  EXPECT_EQ(runs, 200u);
  EXPECT_EQ(json["strategies"].size(), 7u);
  const Json one = run_tool("hunt storm --seeds 20 --strategy pct --json").json();
  EXPECT_EQ(one["strategies"]["pct"]["runs"], 20);
}

TEST(Hunt, DrawsTheSizeOfTheClusterForEachSeed) {
  // Goal: the printed line names what was drawn, what was given stays, and shrinking brings it
  // down. Method: the same mutant, found with the size drawn, given in part, and made small.
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants, and so no failure";
  const std::string hunt = "hunt storm --seeds 20 --mutant answered_calls_stay ";
  const ToolRun drawn = run_tool(hunt + "--shrink-for 0s");
  ASSERT_EQ(drawn.status, 1) << drawn.out << drawn.err;
  const std::string line = drawn.out_lines().back();
  EXPECT_NE(line.find(" --set size=tiny "), std::string::npos) << line;
  EXPECT_NE(line.find(" --set operations="), std::string::npos) << line;
  EXPECT_EQ(run_tool(line.substr(line.find(" run "))).out_lines().back(), line);
  const ToolRun given = run_tool(hunt + "--shrink-for 0s --set workers=6");
  EXPECT_NE(given.out_lines().back().find(" --set workers=6 "), std::string::npos) << given.out;
  const ToolRun small = run_tool(hunt + "--shrink-for 200runs");
  EXPECT_NE(small.out_lines().back().find(" --set operations=1 "), std::string::npos) << small.out;
  const ToolRun whole = run_tool(hunt + "--shrink-for 0s --set size=full");
  EXPECT_EQ(whole.out_lines().back().find(" --set "), std::string::npos) << whole.out;
}

TEST(Shrink, WritesAFileThatReplaysTheFailureAndNoticesWhenItsDecisionsAreGone) {
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants, and so no failure";
  const TemporaryFolder folder;
  const std::string file = folder.file("failure");
  const ToolRun hunted =
      run_tool("hunt storm --seeds 200 --shrink-for 0s --mutant delete_before_answer");
  ASSERT_EQ(hunted.status, 1) << hunted.out << hunted.err;
  const std::string found = hunted.out_lines().back();
  const std::string arguments = found.substr(found.find(" run storm ") + 5);
  const ToolRun shrunk = run_tool("shrink " + arguments + " --for 200runs --out " + file);
  ASSERT_EQ(shrunk.status, 1) << shrunk.out << shrunk.err;
  EXPECT_NE(shrunk.out.find("rref conservation: fork"), std::string::npos) << shrunk.out;
  const ToolRun replayed = run_tool("replay " + file);
  EXPECT_EQ(replayed.status, 1) << replayed.out << replayed.err;
  EXPECT_EQ(replayed.out_lines().back(), shrunk.out_lines().back());
  const std::string intact = arguments.substr(0, arguments.find(" --mutant"));
  const ToolRun holds = run_tool("shrink " + intact + " --json");
  EXPECT_EQ(holds.status, 0);
  EXPECT_EQ(holds.json()["ok"], true);
  // Method: the run holds with the rule back in force, and asks for no such partition.
  const ToolRun gone = run_tool("run " + intact + " --benign --decide 'partition:9.0>8.0#7.0=1'");
  EXPECT_EQ(gone.status, 1);
  EXPECT_NE(gone.out.find("partition:9.0>8.0#7.0: this decision does not come up"),
            std::string::npos)
      << gone.out;
}

TEST(Rnn, WrongTextIsWrongUse) {
  // Goal: one line and exit status 2, in both worlds. Method: a text that is not there, an empty
  // one.
  for (const char* net : {"sim", "tcp"}) {
    const ToolRun missing = run_tool(std::string("run rnn --set text=/no/such/text --net ") + net);
    EXPECT_EQ(missing.status, 2);
    EXPECT_EQ(missing.err,
              "rehearsal run: text file '/no/such/text' cannot be read: No such file or "
              "directory; name a UTF-8 text file with --set text=FILE\n");
    const ToolRun empty = run_tool(std::string("run rnn --set text=/dev/null --net ") + net);
    EXPECT_EQ(empty.status, 2);
    EXPECT_EQ(empty.err_lines().size(), 1u);
  }
}

TEST(Rnn, TooManyColumnsForTheTextAreWrongUse) {
  // Goal: refused before the run. Method: more columns than words.
  const ToolRun run = run_tool("run rnn --set columns=4000");
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err_lines().size(), 1u);
}

TEST(Worker, MissingRankIsWrongUse) {
  // Goal: one line says which variable. Method: no environment at all.
  const ToolRun run = run_tool("worker quickstart", "env -u RANK -u WORLD_SIZE");
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err_lines().size(), 1u);
  EXPECT_NE(run.err.find("RANK"), std::string::npos) << run.err;
}

TEST(Worker, PortInUseIsAnErrorInBoundedTime) {
  // Goal: rank 0 says that the port is taken. Method: the test listens on it.
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  const ToolRun run = run_tool(
      "worker quickstart --rank 0 --world-size 2 --rendezvous "
      "tcp://127.0.0.1:" +
      port);
  close(listener);
  EXPECT_NE(run.status, 0);
  EXPECT_EQ(run.err_lines().size(), 1u) << run.err;
  EXPECT_NE(run.err.find(port), std::string::npos) << run.err;
}

}  // namespace
}  // namespace rehearsal::command_line
