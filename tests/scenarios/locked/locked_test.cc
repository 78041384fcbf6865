#include <gtest/gtest.h>

#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"

namespace rehearsal::command_line {
namespace {

std::string told(const std::string& text, const std::string& part) {
  return text.find(part) == std::string::npos ? "no '" + part + "' in:\n" + text : "";
}

// The line and the stack that begin with this, on standard error.
std::string stack_in(const ToolRun& run, const std::string& line) {
  const size_t start = run.err.find(line);
  return start == std::string::npos ? run.err : run.err.substr(start);
}

TEST(Locked, ARunThatHangsNamesWorkerFunctionAndStackAndEndsWithItsLine) {
  // Goal: not a word is missing, and the process ends. Method: a function that waits for a mutex
  // which another one holds across a call.
  const ToolRun run = run_tool("run locked --seed 3 --watchdog 500ms");
  EXPECT_EQ(run.status, 1);
  const std::string stack = stack_in(
      run,
      "rehearsal: the run hangs in 'read_balance' at worker 'bank': no event for longer than "
      "the watchdog allows\n");
  EXPECT_EQ(told(stack, "pthread_mutex_lock"), "");
  EXPECT_EQ(told(stack, "rehearsal::locked::(anonymous namespace)::read_balance()"), "");
  EXPECT_EQ(told(stack,
                 "a std::mutex must not be held across a call, since all functions of a simulated "
                 "run share one thread. A boost::fibers::mutex may be."),
            "");
  EXPECT_EQ(told(stack,
                 "locked FAILED with seed 3: watchdog: 'read_balance': the run hangs at "
                 "worker 'bank': no event for longer than the watchdog allows\n"),
            "");
  const std::string last = run.err_lines().back();
  EXPECT_EQ(last.substr(last.find(" run ")), " run locked --seed 3 --watchdog 500ms");
}

TEST(Locked, AHuntForATimeEndsAtTheHang) {
  // Goal: a run that hangs does not keep a search that ends by its time.
  const ToolRun run =
      run_tool("hunt locked --for 600s --jobs 1 --shrink-for 1runs --watchdog 500ms --json");
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_EQ(run.json().at("failure").at("oracle"), "watchdog");
}

TEST(Locked, AHuntFindsTheHangMakesItSmallAndEnds) {
  // Goal: a hang is a failure like any other, although every attempt has to be ended. Method: a
  // search, then the line that it prints; with half a second for each run.
  const ToolRun run =
      run_tool("hunt locked --seeds 20 --jobs 1 --shrink-for 40runs --watchdog 500ms --json");
  EXPECT_EQ(run.status, 1) << run.err;
  const Json failure = run.json().at("failure");
  EXPECT_EQ(failure.at("oracle"), "watchdog");
  EXPECT_EQ(told(failure.at("message"), "(anonymous namespace)::"), "");
  EXPECT_EQ(told(failure.at("message"),
                 "a std::mutex must not be held across a call, since all functions of a simulated "
                 "run share one thread. A boost::fibers::mutex may be."),
            "");
  const std::string replay = failure.at("replay");
  EXPECT_EQ(told(replay, " --benign"), "");
  EXPECT_EQ(replay.find("--set calls=6"), std::string::npos) << replay;
  const ToolRun again = run_tool(replay.substr(replay.find(" run ")));
  EXPECT_EQ(again.status, 1);
  EXPECT_EQ(
      told(again.err, "rehearsal: the run hangs in " + failure.at("object").get<std::string>()),
      "");
}

TEST(Locked, ALoopWithoutEndHangsToo) {
  // Goal: as a lock, with what to do if it is none. Method: a loop; one that takes memory,
  // which the handler interrupts wherever it is; one in code that the unwinder knows nothing of.
  for (const std::string how : {"loop", "collect", "stub"}) {
    const ToolRun run = run_tool("run broken --watchdog 500ms --json --set how=" + how);
    EXPECT_EQ(run.status, 1);
    EXPECT_EQ(run.json()["failure"]["oracle"], "watchdog");
    EXPECT_EQ(run.json()["failure"]["object"], "'act'");
    EXPECT_EQ(told(run.err, "::act(std::string const&) at "), "") << how;
    EXPECT_EQ(told(run.err, "If it only computes for so long: --watchdog 60s"), "");
  }
}

TEST(Locked, ALoopThatIsInterruptedHereOrThereIsTheSameFailureTwice) {
  // Goal: exit status 1 and not 3: where it was interrupted says nothing. Method: verify a loop
  // through several functions.
  const ToolRun run = run_tool("verify broken --seeds 1 --watchdog 500ms --set how=collect");
  EXPECT_EQ(run.status, 1) << run.out << run.err;
  EXPECT_EQ(told(run.out, "broken FAILED with seed 1: watchdog: 'act'"), "");
}

struct Loop {
  const char* pause;       // in milliseconds
  const char* shrink_for;  // a run, and its story, take seconds
  bool becomes_small;
};

class RetryingLoop : public testing::TestWithParam<Loop> {};

TEST_P(RetryingLoop, IsFoundByAHuntMadeSmallAndReplays) {
  // Goal: a failure with its seed, within the time of the hunt, whatever the pause; a line that a
  // shell takes, also if there was no time to make it small. Method: a crash that the seed draws; a
  // run holds where it is the trainer that crashes.
  const Loop& loop = GetParam();
  const ToolRun run = run_tool(std::string("hunt retrying --crashes 1 --for 60s --json") +
                               " --shrink-for " + loop.shrink_for + " --set pause=" + loop.pause);
  EXPECT_EQ(run.status, 1) << run.err;
  const Json failure = run.json().at("failure");
  EXPECT_EQ(failure.at("oracle"), "progress");
  EXPECT_EQ(failure.at("object"), "trainer");
  EXPECT_EQ(told(failure.at("message"), "trainer has called `one` at 'ps' "), "");
  EXPECT_EQ(told(failure.at("message"), "; each failed at once: peer_lost, 'ps' crashed at "), "");
  const std::string replay = failure.at("replay");
  EXPECT_LE(replay.size(), 100'000u);
  EXPECT_EQ(replay.find(" --benign") != std::string::npos, loop.becomes_small) << replay;
  const ToolRun again = run_tool(replay.substr(replay.find(" run ")) + " --json");
  EXPECT_EQ(again.status, 1);
  EXPECT_EQ(again.json()["failure"]["message"], failure.at("message"));
}

INSTANTIATE_TEST_SUITE_P(Pauses, RetryingLoop,
                         testing::Values(Loop{"0", "0s", false}, Loop{"1", "2runs", false},
                                         Loop{"1000", "40runs", true}),
                         [](const testing::TestParamInfo<Loop>& info) {
                           return std::string(info.param.pause) + "ms";
                         });

TEST(Retrying, HoldsWhereTheServerComesBack) {
  for (const std::string pause : {"0", "1", "1000"}) {
    const ToolRun run =
        run_tool("hunt retrying --crashes 1 --restarts amnesia --seeds 20 --set pause=" + pause);
    EXPECT_EQ(run.status, 0) << run.out << run.err;
  }
}

TEST(Retrying, AHuntForATimeEndsThoughEachCallHasAValue) {
  // Goal: --for is kept by a program that moves forward for ever. Method: calls without a pause.
  const ToolRun run =
      run_tool("hunt retrying --set endless=1 --jobs 1 --for 1s --faults none --json");
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_EQ(run.json()["failure"]["oracle"], "unfinished");
  const ToolRun bounded =
      run_tool("run retrying --set endless=1 --faults none --virtual-time-max 1s --json");
  EXPECT_EQ(bounded.status, 1);
  EXPECT_EQ(bounded.json()["failure"]["oracle"], "time");
}

struct Ending {
  const char* how;
  const char* signal;
  const char* place;  // in the stack
};

class EndingTest : public testing::TestWithParam<Ending> {};

TEST_P(EndingTest, NamesSignalWorkerFunctionAndStack) {
  // Goal: `run` says as much as `hunt` of what ended its process. Method: a served function, or a
  // main, that does it.
  const Ending& ending = GetParam();
  const ToolRun run = run_tool(std::string("run broken --set how=") + ending.how);
  EXPECT_EQ(run.status, 1);
  const std::string what = std::string(ending.signal) + " in 'act' at worker 'ps'";
  const std::string stack = stack_in(run, "rehearsal: the run's process got " + what);
  EXPECT_EQ(told(stack, ending.place), "");
  EXPECT_EQ(told(stack, "at tests/scenarios/locked/programs.cc:"), "");
  EXPECT_EQ(told(stack, "\nbroken FAILED with seed 1: process: " + std::string(ending.signal) +
                            ": in 'act' at worker 'ps'"),
            "");
  const std::string last = run.err_lines().back();
  EXPECT_EQ(last.substr(last.find(" run ")),
            std::string(" run broken --seed 1 --set how=") + ending.how);
}

INSTANTIATE_TEST_SUITE_P(
    Endings, EndingTest,
    testing::Values(Ending{"segv", "signal 11 (Segmentation fault)", "::act("},
                    Ending{"overflow", "signal 11 (Segmentation fault)", "::overflow(long) at "},
                    Ending{"fpe", "signal 8 (Floating point exception)", "::act("},
                    Ending{"abort", "signal 6 (Aborted)", "::act("},
                    Ending{"noexcept", "signal 6 (Aborted)", "std::terminate()"}),
    [](const testing::TestParamInfo<Ending>& info) { return std::string(info.param.how); });

TEST(Endings, AStackThatIsUsedUpIsCalledSo) {
  // Goal: a fault at the end of a fiber's stack is told, on another one. Method: endless recursion.
  const ToolRun run = run_tool("run broken --set how=overflow");
  EXPECT_EQ(told(run.err, "at worker 'ps', which may have used up its stack\n"), "");
  EXPECT_EQ(told(run.err, " times\n"), "");
}

TEST(Endings, OfAMainAreToldAsSuch) {
  // Goal: a main is no served function. Method: one that aborts.
  const ToolRun run = run_tool("run broken --set how=main");
  EXPECT_EQ(told(run.err, "signal 6 (Aborted) in its main at worker 'ps'\n"), "");
}

TEST(Endings, OfAHuntHaveTheStackInTheFailure) {
  // Goal: whoever reads the report sees where it was. Method: a hunt for a segmentation fault.
  const ToolRun run = run_tool("hunt broken --seeds 2 --jobs 1 --set how=segv --json");
  EXPECT_EQ(run.status, 1);
  const Json failure = run.json().at("failure");
  EXPECT_EQ(failure.at("object"), "signal 11 (Segmentation fault)");
  EXPECT_EQ(told(failure.at("message"), " in 'act' at worker 'ps'\n"), "");
  EXPECT_EQ(told(failure.at("message"), "::act(std::string const&) at "), "");
}

constexpr const char* kThrown =
    "std::runtime_error: not now [through client]\nthrown in act at "
    "tests/scenarios/locked/programs.cc:";

TEST(ExceptionTraces, SayWhereTheExceptionWasThrownAndChangeNothing) {
  // Goal: the file and the line, on request, of the same run. Method: an exception that a served
  // function throws, with and without the flag.
  const std::string line = "run broken --set how=throw --json";
  const Json plain = run_tool(line).json();
  const Json traced = run_tool(line + " --exception-traces").json();
  EXPECT_EQ(told(traced["failure"]["message"], kThrown), "");
  EXPECT_EQ(plain["failure"]["message"].get<std::string>().find("thrown in"), std::string::npos);
  EXPECT_EQ(plain["fingerprint"], traced["fingerprint"]);
  EXPECT_EQ(plain["failure"]["replay"], traced["failure"]["replay"]);
}

TEST(ExceptionTraces, AreOnInAReplay) {
  // Goal: whoever looks into a failure is told. Method: the file that a hunt leaves.
  const TemporaryFolder made;
  const std::string folder = made.file("found");
  EXPECT_EQ(run_tool("hunt broken --set how=throw --seeds 1 --out " + folder).status, 1);
  const ToolRun replayed = run_tool("replay " + folder + "/failure.run");
  EXPECT_EQ(replayed.status, 1);
  EXPECT_EQ(told(replayed.out, kThrown), "");
}

TEST(ExceptionTraces, AreAskedForOverTcpToo) {
  // Goal: the flag is taken, and a variable that cannot be understood is told. Method: real
  // processes; what an error then says is tested where a worker is run.
  const std::string line = "run broken --set how=throw --net tcp";
  EXPECT_EQ(run_tool(line + " --exception-traces").status, 1);
  const ToolRun wrong = run_tool(line, "REHEARSAL_EXCEPTION_TRACES=yes");
  EXPECT_EQ(told(wrong.out + wrong.err, "REHEARSAL_EXCEPTION_TRACES=yes: type 1 ("), "");
}

TEST(ExceptionTraces, AreToldByTheReplayOfARecord) {
  // Goal: a record need not have been made with traces. Method: the worker at which a served
  // function throws; its own main ends well.
  const TemporaryFolder made;
  const std::string folder = made.file("records");
  EXPECT_EQ(run_tool("run broken --set how=throw --net tcp --record " + folder).status, 1);
  const ToolRun replayed = run_tool("replay " + folder + "/ps.record");
  EXPECT_EQ(replayed.status, 0) << replayed.err;
  EXPECT_EQ(told(replayed.out,
                 "ps: std::runtime_error: not now\nthrown in act at "
                 "tests/scenarios/locked/programs.cc:"),
            "");
  const Json json = run_tool("replay " + folder + "/ps.record --json").json();
  ASSERT_EQ(json.at("throws").size(), 1u) << json;
  EXPECT_EQ(json["throws"][0]["error"], "std::runtime_error: not now");
}

}  // namespace
}  // namespace rehearsal::command_line
