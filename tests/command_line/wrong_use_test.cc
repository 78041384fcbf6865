#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <string>

#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::command_line {
namespace {

struct Case {
  const char* arguments;
  const char* line;
};

class WrongUseTest : public testing::TestWithParam<Case> {};

// Rows: rpc_test::TensorPipeAgentRpcTest.{test_mismatched_type_for_options,
// Rows: test_infer_backend_from_options}
TEST_P(WrongUseTest, OneLineSaysWhatToTypeInstead) {
  // Goal: exit status 2, one line, nothing on standard output. Method: the whole line.
  const ToolRun run = run_tool(GetParam().arguments);
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err, std::string("rehearsal") + GetParam().line + "\n");
}

INSTANTIATE_TEST_SUITE_P(
    Words, WrongUseTest,
    testing::Values(
        Case{"",
             ": name a command: list, run, hunt, merge, shrink, replay, check, report, explore, "
             "verify or worker; rehearsal --help explains them"},
        Case{"rum toy", ": no command 'rum'; did you mean 'run'?"},
        Case{"dance",
             ": no command 'dance'; there are list, run, hunt, merge, shrink, replay, check, "
             "report, explore, verify, worker"},
        Case{"run", " run: name a scenario; 'rehearsal list' shows them"},
        Case{"verify", " verify: name a scenario; 'rehearsal list' shows them"},
        Case{"hunt --devices 2", " hunt: --devices 2: no scenario uses any"},
        Case{"run toys", " run: no scenario 'toys'; did you mean 'toy'?"},
        Case{"hunt toy xyz", " hunt: no scenario 'xyz'; there are toy, other"},
        Case{"run toy other",
             " run: one scenario at a time, not 'other' as well; 'hunt' takes several"},
        Case{"run toy --sedd 3", " run: no flag --sedd; did you mean --seed?"},
        Case{"run toy --zzzzzzz", " run: no flag --zzzzzzz; type rehearsal run --help"},
        Case{"run toy --seeds 3", " run: no flag --seeds; did you mean --seed?"}));

INSTANTIATE_TEST_SUITE_P(
    Values, WrongUseTest,
    testing::Values(
        Case{"run toy --seed x",
             " run: --seed x: type a whole number from 0 to 18446744073709551615"},
        Case{"run toy --seed -1",
             " run: --seed -1: type a whole number from 0 to 18446744073709551615"},
        Case{"run toy --net udp", " run: --net udp: type sim or tcp"},
        Case{"run toy --faults some", " run: --faults some: type none, mild or hostile"},
        Case{"run toy --restarts sometimes",
             " run: --restarts sometimes: type never, amnesia, checkpoint or drawn"},
        Case{"run toy --checkpoints here",
             " run: --checkpoints here: simulated machines have disks of their own; type --net "
             "tcp, or leave it out"},
        Case{"run toy --partitions wide", " run: --partitions wide: type long or short"},
        Case{"run toy --peer-timeout 10s",
             " run: --peer-timeout, --heartbeat and --refusal-limit need --net tcp: a simulated "
             "run has a time of its own"},
        Case{"run toy --net tcp --peer-timeout 10",
             " run: --peer-timeout 10: type a time, for example 500ms, 10s or 2m"},
        Case{"worker toy --heartbeat often",
             " worker: --heartbeat often: type a time, for example 500ms, 10s or 2m"},
        Case{"run toy --spin 60us",
             " run: --spin 60us needs --net tcp: nothing waits in a simulated run"},
        Case{"worker toy --spin 60",
             " worker: --spin 60: type a time of at most 100ms, for example 60us, or 0"},
        Case{"run toy --collectives gloo",
             " run: --collectives gloo needs --net tcp: in a simulated run calls carry all"},
        Case{"run toy --net tcp --collectives mpi",
             " run: --collectives mpi: type own (the calls of the workers carry all) or gloo (it "
             "carries the large tensors of process groups)"},
        Case{"run toy --strategy best", " run: --strategy best: there are swarm, walk"},
        Case{"run toy --strategy guided",
             " run: --strategy guided: goes on from other runs, which only 'hunt' has; what it "
             "found "
             "is repeated with --redraw"},
        Case{"run toy --decide 'cut:nobody.0>leader.0#7.0=1'",
             " run: --decide: 'cut:nobody.0>leader.0#7.0=1': the program has no worker 'nobody'"},
        Case{"run toy --mutant x", " run: --mutant x: there are no_fencing"},
        Case{"hunt toy --seeds 0", " hunt: --seeds 0: type a whole number from 1 to 1000000000000"},
        Case{"hunt toy --for 60",
             " hunt: --for 60: type a time, for example 60s, 5m or 2h, "
             "a time of processors, 60s-cpu, or a number of runs, 500runs"},
        Case{"hunt toy --for 60s --seeds 5", " hunt: --seeds and --for: type one of them"},
        Case{"hunt toy --shard 3", " hunt: --shard 3: type I/N, for example 0/4"},
        Case{"hunt toy --shard 3/2", " hunt: --shard 3/2: part 3: type a whole number from 0 to 1"},
        Case{"hunt toy --shard 4/4", " hunt: --shard 4/4: part 4: type a whole number from 0 to 3"},
        Case{"hunt toy --shard 0/0",
             " hunt: --shard 0/0: number of parts 0: type a whole number from 1 to 1000000"},
        Case{"hunt toy --commit main",
             " hunt: --commit: 'main' is no commit: give its id, 7 to 64 hexadecimal digits"},
        Case{"verify toy --commit a03519d --first-seed 3",
             " verify: --first-seed and --commit: type one of them"},
        Case{"hunt toy --junit /no/such/file",
             " hunt: --junit /no/such/file: cannot be written: No such file or directory; name "
             "another file"},
        Case{"run toy --junit /proc",
             " run: --junit /proc: cannot be written: Is a directory; name another file"},
        Case{"verify toy --junit /dev/null/file",
             " verify: --junit /dev/null/file: cannot be written: Not a directory; name another "
             "file"},
        Case{"shrink toy --out /no/such/file",
             " shrink: --out /no/such/file: cannot be written: No such file or directory; name "
             "another file"},
        Case{"worker toy --metrics-port 70000",
             " worker: --metrics-port 70000: type a port or HOST:PORT, for example 9464"},
        Case{"worker toy --log loud",
             " worker: --log loud: there are debug, info, warn, error, off"},
        Case{"run toy --junit /no/such/file",
             " run: --junit /no/such/file: cannot be written: No such file or directory; name "
             "another file"},
        Case{"merge", " merge: name the files that 'hunt --json' wrote, of all shards"},
        Case{"merge /no/such",
             " merge: /no/such: cannot be read: No such file or directory; name a file that "
             "'hunt --json' wrote"},
        Case{"merge /proc/version", " merge: /proc/version: not an output of 'hunt --json'"},
        Case{"hunt toy --shrink-for x",
             " hunt: --shrink-for x: type a time, for example 60s, 5m or 2h, a time of "
             "processors, 60s-cpu, or a number of runs, 500runs"},
        Case{"run toy --pauses brief", " run: --pauses brief: type long or short"},
        Case{"run toy --watchdog 60",
             " run: --watchdog 60: type a time, for example 60s, 5m or 2h"},
        Case{"hunt toy --watchdog 25h",
             " hunt: --watchdog 25h: type a time from 100ms to 24h, or 0 for none"},
        Case{"hunt toy --watchdog 10ms",
             " hunt: --watchdog 10ms: type a time from 100ms to 24h, or 0 for none"},
        Case{"run toy --network fra", " run: --network fra: did you mean 'far'?"},
        Case{"run toy --without resets,parts",
             " run: --without parts: there are resets, partitions"},
        Case{"run toy --decide x",
             " run: --decide: 'x' is no override: it has no '='; write it like cut:1.0>0.0#7.0=1"},
        Case{"replay",
             " replay: type rehearsal replay FILE, a file that 'shrink --out' or '--record' wrote"},
        Case{"replay /no/such",
             " replay: /no/such: cannot be read: No such file or directory; name a file that "
             "'shrink --out' or '--record' wrote"},
        Case{"replay /proc/version",
             " replay: /proc/version: is no file of 'shrink --out': its first line is 'run NAME "
             "--seed N'"},
        Case{"hunt toy --out /proc/no",
             " hunt: --out /proc/no: cannot be written: No such file or directory; name another "
             "directory"},
        Case{"hunt toy --out /proc",
             " hunt: --out /proc: cannot be written: No such file or directory; name another "
             "directory"}));

INSTANTIATE_TEST_SUITE_P(
    Options, WrongUseTest,
    testing::Values(
        Case{"run toy --set rate", " run: --set rate: type --set key=value"},
        Case{"run toy --set raet=1", " run: --set raet=1: no such option; did you mean 'rate'?"},
        Case{"run toy --set rate=2", " run: --set rate=2: rate is a number from 0 to 1"},
        Case{"run toy --set rate=nan", " run: --set rate=nan: rate is a number from 0 to 1"},
        Case{"run toy --set followers=1.5",
             " run: --set followers=1.5: followers is a whole number from 1 to 9"},
        Case{"run toy --set size=big", " run: --set size=big: size is full or tiny"},
        Case{"run toy --set unusable=1", " run: the toy cannot be used like this"}));

INSTANTIATE_TEST_SUITE_P(
    OverTcp, WrongUseTest,
    testing::Values(
        Case{"run toy --net tcp --faults mild",
             " run: --faults mild needs the simulator: type --net sim, or leave it out"},
        Case{"run toy --net tcp --crashes 1",
             " run: --crashes 1 needs the simulator: type --net sim, or leave it out"},
        Case{"run toy --devices 2",
             " run: --devices 2: toy places no tensor on a device; none of the others does"},
        Case{"run toy --net tcp --restarts drawn",
             " run: --restarts drawn needs the simulator: type --net sim, or leave it out"},
        Case{"run toy --net tcp --partitions long",
             " run: --partitions long needs the simulator: type --net sim, or leave it out"},
        Case{"run toy --net tcp --pauses short",
             " run: --pauses short needs the simulator: type --net sim, or leave it out"},
        Case{"hunt toy --virtual-time-max 10001h",
             " hunt: --virtual-time-max 10001h: type a time of up to 10000h, or 0 for one without "
             "an end"},
        Case{"run toy --net tcp --virtual-time-max 5h",
             " run: --virtual-time-max 5h needs the simulator: type --net sim, or leave it out"},
        Case{"run toy --net tcp --watchdog 5s",
             " run: --watchdog 5s needs the simulator: type --net sim, or leave it out"},
        Case{"run toy --net tcp --pauses long",
             " run: --pauses long needs the simulator: type --net sim, or leave it out"},
        Case{"run toy --net tcp --network far",
             " run: --network far needs the simulator: type --net sim, or leave it out"},
        Case{"run toy --net tcp --record /proc/no",
             " run: --record /proc/no: cannot be written: No such file or directory; name another "
             "directory"},
        Case{"run toy --net tcp --checkpoints /proc/no",
             " run: --checkpoints /proc/no: cannot be written: No such file or directory; name "
             "another directory"},
        Case{"run toy --net tcp --without resets",
             " run: --without needs the simulator: type --net sim, or leave it out"}));

TEST(WrongUseTest, AClusterUnderALauncherIsRefusedWithTheLineThatStartsIt) {
  // Goal: no cluster for each rank. Method: the variables of launchers, and of one that has one
  // rank.
  const std::string line = "--set followers=1 --seed 5";
  const auto refused = [&](const std::string& variables) {
    return run_tool("run toy --net tcp " + line, variables);
  };
  ToolRun run = refused("TORCHELASTIC_RUN_ID=none WORLD_SIZE=2 RANK=0");
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err,
            "rehearsal run: --net tcp: torchrun has started this command 2 times, and each would "
            "be a cluster of its own; type torchrun --no-python --nproc-per-node 2 rehearsal "
            "worker toy --seed 5 --set followers=1\n");
  run = refused("OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1");
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.err.find("mpirun has started this command 2 times"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("type mpirun -n 2 rehearsal worker toy --seed 5 --set followers=1\n"),
            std::string::npos)
      << run.err;
  EXPECT_EQ(refused("TORCHELASTIC_RUN_ID=none WORLD_SIZE=1 RANK=0").status, 0);
}

TEST(WrongUseTest, WhatIsNoFileIsRefusedAtOnce) {
  // Goal: no wait, and no memory without end. Method: a pipe that nobody writes, and a device that
  // has no end, wherever a command reads a file of an earlier run.
  const TemporaryFolder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& file : {pipe, std::string("/dev/zero")})
    for (const std::string command : {"replay ", "report ", "merge ", "run toy --compare "}) {
      const ToolRun run = run_tool(command + file);
      EXPECT_EQ(run.status, 2) << command;
      EXPECT_EQ(run.out, "");
      EXPECT_EQ(run.err_lines().size(), 1u) << run.err;
      EXPECT_NE(run.err.find(file + ": cannot be read: it is no file: a pipe, a device or a "
                                    "socket; name a file that "),
                std::string::npos)
          << run.err;
    }
}

TEST(WrongUseTest, AWordThatIsTooLongForAFileIsNoScenarioEither) {
  // Goal: `shrink` takes a file or a scenario, and neither way fails otherwise. Method: a name that
  // no file system has.
  const std::string name(5'000, 'x');
  const ToolRun run = run_tool("shrink " + name);
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err, "rehearsal shrink: no scenario '" + name + "'; there are toy, other\n");
}

TEST(WrongUseTest, TheVersionIsOneLine) {
  // Goal: a report of a failure can say which program it was. Method: what the flag prints.
  const ToolRun run = run_tool("--version");
  EXPECT_EQ(run.status, 0);
  // The tests' binary is another program than the tool: its own name comes first.
  const std::regex line(
      "rehearsal, rehearsal [0-9.]+, LibTorch [0-9.]+([+][a-z0-9]+)?(, with mutants)?\n");
  EXPECT_TRUE(std::regex_match(run.out, line)) << run.out;
}

TEST(Help, SpeaksTheNameOfTheProgramThatRuns) {
  // Goal: the tool of somebody's own scenarios says what to type there. Method: this tool under
  // another name: help, a slip, and the version.
  const TemporaryFolder folder;
  const std::string train = folder.file("train");
  std::filesystem::create_symlink(std::filesystem::read_symlink("/proc/self/exe"), train);
  const auto said = [&](const std::string& words) {
    const std::string file = folder.file("said");
    const std::string command = std::string(kToolVariable) + "=1 '" + train + "' " + words;
    static_cast<void>(std::system((command + " >'" + file + "' 2>&1 </dev/null").c_str()));
    return read_whole_file(file);
  };
  const std::string overview = said("--help");
  EXPECT_TRUE(overview.starts_with("train: the same distributed LibTorch program")) << overview;
  EXPECT_NE(overview.find("\n  train list                   the scenarios"), std::string::npos);
  EXPECT_NE(overview.find("\n                               or the worker that"), std::string::npos)
      << overview;
  EXPECT_NE(overview.find("\ntrain COMMAND --help lists"), std::string::npos);
  for (const std::string words : {"run --help", "replay --help", "report --help"}) {
    const std::string help = said(words);
    EXPECT_NE(help.find("train " + words.substr(0, words.find(' '))), std::string::npos) << help;
    EXPECT_EQ(help.find("rehearsal "), std::string::npos) << help;
  }
  EXPECT_EQ(said("run"), "train run: name a scenario; 'train list' shows them\n");
  EXPECT_TRUE(said("--version").starts_with("train, rehearsal ")) << said("--version");
}

TEST(Help, IsOnStandardOutput) {
  // Goal: help is no error. Method: both levels.
  const ToolRun overview = run_tool("--help");
  EXPECT_EQ(overview.status, 0);
  EXPECT_NE(overview.out.find("rehearsal verify NAME"), std::string::npos);
  for (const std::string command :
       {"list", "run", "hunt", "merge", "shrink", "replay", "verify", "worker"}) {
    const ToolRun help = run_tool(command + " --help");
    EXPECT_EQ(help.status, 0) << command;
    EXPECT_NE(help.out.find("Examples:\n"), std::string::npos) << command;
    EXPECT_NE(help.out.find("rehearsal " + command), std::string::npos) << command;
    EXPECT_NE(help.out.find("Exit status: 0 holds, 1 failed, 2 wrong usage, 3 nondeterminism"),
              std::string::npos)
        << command;
  }
  const ToolRun hunt = run_tool("hunt --help");
  EXPECT_EQ(hunt.status, 0);
  EXPECT_NE(hunt.out.find("--shard"), std::string::npos);
}

}  // namespace
}  // namespace rehearsal::command_line
