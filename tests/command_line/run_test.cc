#include <gtest/gtest.h>

#include <fstream>

#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"

namespace rehearsal::command_line {
namespace {

TEST(List, ShowsEveryScenarioInOneLine) {
  // Goal: name, workers, summary and options. Method: both outputs.
  const ToolRun run = run_tool("list");
  EXPECT_EQ(run.status, 0);
  ASSERT_EQ(run.out_lines().size(), 2u);
  EXPECT_EQ(run.out_lines()[0].substr(0, 44), "toy    3 workers  what a test asks for; size");
  EXPECT_NE(run.out_lines()[1].find("followers=2 rate=0.5"), std::string::npos);
  const Json json = run_tool("list --json").json();
  EXPECT_EQ(json["scenarios"][1]["name"], "other");
  EXPECT_EQ(json["scenarios"][0]["workers"], 3);
  EXPECT_EQ(json["scenarios"][0]["options"][0]["allowed"], "full or tiny");
}

TEST(Run, PrintsItsStoryAndItsResult) {
  // Goal: what a person sees. Method: a run that holds.
  const ToolRun run = run_tool("run toy --seed 6");
  ASSERT_EQ(run.status, 0) << run.err;
  ASSERT_GE(run.out_lines().size(), 3u) << run.out;
  EXPECT_EQ(run.out_lines()[0], "line of seed 6");
  EXPECT_EQ(run.out_lines()[1], "toy holds (sim, seed 6, faults mild)");
  EXPECT_EQ(run.out_lines()[2], "  half  3");
  EXPECT_EQ(run.err, "");
}

TEST(Run, JsonIsOneObjectWithEveryField) {
  // Goal: the promised fields, and nothing else on standard output. Method: parse all of it.
  const ToolRun run = run_tool("run toy --seed 6 --json --set rate=0.75");
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.err, "line of seed 6\n");
  const Json json = run.json();
  EXPECT_EQ(json["scenario"], "toy");
  EXPECT_EQ(json["seed"], 6);
  EXPECT_EQ(json["net"], "sim");
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["fingerprint"], "6000");
  EXPECT_EQ(json["virtual_seconds"], 1.5);
  EXPECT_GE(json["wall_seconds"].get<double>(), 0);
  EXPECT_EQ(json["calls"], 3);
  EXPECT_EQ(json["messages"], 4);
  EXPECT_EQ(json["result_digest"].get<std::string>().size(), 32u);
  EXPECT_EQ(json["results"], Json({{"half", 3.0}}));
  EXPECT_EQ(json["tensors"][0]["name"], "bias");
  EXPECT_EQ(json["tensors"][1]["shape"], Json({2, 2}));
  EXPECT_EQ(json["options"]["rate"], "0.75");
  EXPECT_EQ(json["options"]["size"], "full");
  EXPECT_EQ(json["faults"], "mild");
  EXPECT_FALSE(json.contains("failure"));
}

TEST(Run, FailureEndsWithTheCommandThatRepeatsIt) {
  // Goal: the last line alone reproduces. Method: read it, run it again, compare.
  const std::string arguments =
      "run toy --seed 6 --set fail_at=6 --set size=tiny --faults hostile --crashes 1 "
      "--restarts checkpoint --partitions long --strategy walk --mutant no_fencing";
  const ToolRun run = run_tool(arguments);
  ASSERT_EQ(run.status, 1) << run.err;
  ASSERT_GE(run.out_lines().size(), 2u) << run.out;
  const std::string last = run.out_lines().back();
  EXPECT_EQ(last.substr(last.find(" run ")),
            " run toy --seed 6 --set size=tiny --set fail_at=6 --faults hostile --crashes 1 "
            "--restarts checkpoint --partitions long --strategy walk --mutant no_fencing");
  EXPECT_EQ(run.out_lines().end()[-2], "toy FAILED with seed 6: toy oracle: object 7: it broke");
  const ToolRun again = run_tool(last.substr(last.find(" run ")));
  ASSERT_EQ(again.status, 1) << again.err;
  EXPECT_EQ(again.out_lines().back(), last);
}

TEST(Run, FailureIsInTheJson) {
  // Goal: the failure object; people read standard error. Method: the same failure with --json.
  const ToolRun run = run_tool("run toy --seed 6 --set fail_at=6 --json");
  EXPECT_EQ(run.status, 1);
  const Json failure = run.json()["failure"];
  EXPECT_EQ(failure["oracle"], "toy oracle");
  EXPECT_EQ(failure["object"], "object 7");
  EXPECT_EQ(failure["message"], "it broke");
  EXPECT_EQ(failure["replay"], run.err_lines().back());
}

TEST(Run, DeathOfTheProcessPrintsTheCommandToo) {
  // Goal: a failed check in the simulated cluster is repeatable. Method: abort in the run.
  const ToolRun run = run_tool("run toy --seed 6 --set abort_at=6");
  ASSERT_EQ(run.status, 1) << run.out;
  ASSERT_FALSE(run.err.empty());
  EXPECT_NE(run.err_lines().back().find(" run toy --seed 6 --set abort_at=6"), std::string::npos);
  EXPECT_EQ(run.err_lines().end()[-2],
            "toy FAILED with seed 6: process: signal 6 (Aborted): in no worker's code");
  const ToolRun json_run = run_tool("run toy --seed 6 --set abort_at=6 --json");
  EXPECT_EQ(json_run.status, 1);
  const Json failure = json_run.json()["failure"];
  EXPECT_EQ(failure["oracle"], "process");
  EXPECT_EQ(failure["object"], "signal 6 (Aborted)");
  EXPECT_EQ(failure["message"], "in no worker's code");
}

// The plan of a run of seed 4: "hostile 1 amnesia long short" of faults, crashes, restarts,
// partitions and pauses.
std::string plan_with(const std::string& flags) {
  const Json json = run_tool("run other --seed 4 --json " + flags).json();
  const auto length = [&json](const char* name) {
    return json[name].get<bool>() ? std::string(" long") : std::string(" short");
  };
  return json["faults"].get<std::string>() + " " + std::to_string(json["crashes"].get<int>()) +
         " " + json["restarts"].get<std::string>() + length("long_partitions") +
         length("long_pauses");
}

TEST(Run, EachFlagOfFaultsOverridesItsOwnPartOfWhatTheScenarioDraws) {
  // Goal: a flag asks for more or less of one thing, and leaves the others. Method: the plan of a
  // scenario that draws all of them, with each flag alone and with all.
  EXPECT_EQ(plan_with(""), "hostile 1 amnesia long long");
  EXPECT_EQ(plan_with("--faults mild"), "mild 1 amnesia long long");
  EXPECT_EQ(plan_with("--crashes 3"), "hostile 3 amnesia long long");
  EXPECT_EQ(plan_with("--crashes 0"), "hostile 0 amnesia long long");
  EXPECT_EQ(plan_with("--restarts never"), "hostile 1 never long long");
  EXPECT_EQ(plan_with("--partitions short"), "hostile 1 amnesia short long");
  EXPECT_EQ(plan_with("--pauses short"), "hostile 1 amnesia long short");
  EXPECT_EQ(plan_with("--crash-at leader:2"), "hostile 1 amnesia long long");
  EXPECT_EQ(
      plan_with("--faults none --crashes 0 --restarts drawn --partitions short --pauses long"),
      "none 0 drawn short long");
}

TEST(Run, ThePrintedLineRepeatsThePlan) {
  // Goal: what a flag has switched off stays off. Method: a failure with flags of both kinds.
  const ToolRun run = run_tool(
      "run other --seed 4 --set fail_at=4 --partitions short --pauses long --watchdog 1500ms "
      "--virtual-time-max 48h");
  EXPECT_EQ(run.status, 1);
  const std::string last = run.out_lines().back();
  EXPECT_EQ(last.substr(last.find(" run ")),
            " run other --seed 4 --set fail_at=4 --partitions short --pauses long --watchdog "
            "1500ms --virtual-time-max 172800s");
}

class Compare : public testing::Test {
 protected:
  void SetUp() override { std::ofstream(file_) << run_tool("run toy --seed 6 --json").out; }
  const TemporaryFolder folder_;
  const std::string file_ = folder_.file("run.json");
};

TEST_F(Compare, EqualTensorsHold) {
  // Goal: same seed, same bits. Method: compare with an output of the same run.
  EXPECT_EQ(run_tool("run toy --seed 6 --compare " + file_).status, 0);
}

TEST_F(Compare, SameBitsOverTcpHold) {
  // Goal: results of several workers compare with those of one process. Method: net tcp.
  EXPECT_EQ(run_tool("run toy --seed 6 --net tcp --compare " + file_).status, 0);
}

TEST_F(Compare, FirstTensorThatDiffersIsNamed) {
  // Goal: its name, and exit status 1. Method: another seed changes `weight` but not `bias`.
  const ToolRun run = run_tool("run toy --seed 7 --json --compare " + file_);
  EXPECT_EQ(run.status, 1);
  const std::string message = run.json()["failure"]["message"];
  EXPECT_EQ(message.substr(0, 26), "tensor 'weight' differs fr");
}

TEST_F(Compare, UnusableFileIsWrongUse) {
  // Goal: no run before a clear refusal. Method: no file, and a file that is something else.
  EXPECT_EQ(
      run_tool("run toy --compare /no/file").err,
      "rehearsal run: --compare /no/file: cannot be read: No such file or directory; name a file "
      "that 'run --json' wrote\n");
  const ToolRun other = run_tool("run toy --compare /etc/passwd");
  EXPECT_EQ(other.status, 2);
  EXPECT_EQ(other.err, "rehearsal run: --compare /etc/passwd: not an output of 'run --json'\n");
}

TEST(RunOverTcp, WorkersAreProcessesAndTheirResultsAreMerged) {
  // Goal: one report from three workers. Method: each declares its part.
  const ToolRun run = run_tool("run toy --seed 6 --net tcp --json");
  EXPECT_EQ(run.status, 0) << run.err;
  const Json json = run.json();
  EXPECT_EQ(json["calls"], 9);
  EXPECT_EQ(json["messages"], 12);
  EXPECT_EQ(json["fingerprint"], nullptr);
  EXPECT_EQ(json["tensors"].size(), 2u);
  EXPECT_EQ(run.err, "leader at 127.0.0.1\n");
  EXPECT_EQ(json["result_digest"], run_tool("run toy --seed 6 --json").json()["result_digest"]);
}

TEST(RunOverTcp, WorkerThatFailsIsNamed) {
  // Goal: the failure says which worker. Method: rank 2 fails.
  const ToolRun run = run_tool("run toy --net tcp --set fail_at=2 --json");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.json()["failure"]["object"], "follower1");
  EXPECT_EQ(run.json()["failure"]["message"], "peer_lost: leader");
}

TEST(RunOverTcp, WorkerThatDiesIsNamed) {
  // Goal: a crash of a process is a failure of the run. Method: rank 1 aborts.
  const ToolRun run = run_tool("run toy --net tcp --set abort_at=1 --json");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.json()["failure"]["object"], "follower0");
  EXPECT_EQ(run.json()["failure"]["message"], "ended with signal 6 (Aborted)");
}

TEST(Worker, TakesItsPlaceFromFlagsOrEnvironment) {
  // Goal: both ways, and a clear line for neither. Method: the toy wants a rank.
  EXPECT_EQ(run_tool("worker toy --rank 3").status, 0);
  EXPECT_EQ(run_tool("worker toy", "RANK=3").status, 0);
  const ToolRun missing = run_tool("worker toy");
  EXPECT_EQ(missing.status, 2);
  EXPECT_EQ(missing.err, "rehearsal worker: no rank: set RANK or type --rank\n");
  EXPECT_EQ(run_tool("worker toy --rank 3 --set fail_at=3").status, 1);
}

TEST(Worker, AnAddressThatIsNoneIsWrongUse) {
  // Goal: one line, before anything starts. Method: what is none, and what nobody could connect to.
  for (const char* wrong : {"--listen 7000", "--listen host", "--listen ::1:7000",
                            "--advertise 7000", "--advertise host:", "--advertise host:65536",
                            "--advertise host:0", "--advertise [::1:80"}) {
    const ToolRun run = run_tool(std::string("worker toy --rank 3 ") + wrong);
    EXPECT_EQ(run.status, 2) << wrong;
    EXPECT_EQ(run.err, std::string("rehearsal worker: ") + wrong +
                           ": type HOST:PORT, for example 10.0.0.7:7000 or [::1]:7000\n");
  }
  for (const char* right : {"--listen 0.0.0.0:0", "--advertise [::1]:80"})
    EXPECT_EQ(run_tool(std::string("worker toy --rank 3 ") + right).status, 0) << right;
}

}  // namespace
}  // namespace rehearsal::command_line
