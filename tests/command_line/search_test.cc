#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::command_line {
namespace {

TEST(Hunt, RunsEverySeedOfEveryScenario) {
  // Goal: nothing is left out. Method: count the runs.
  const ToolRun run = run_tool("hunt toy other --seeds 25 --jobs 3 --json");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.json()["runs"], 50);
  EXPECT_EQ(run.json()["ok"], true);
}

TEST(Hunt, WithoutANameSearchesAllInEachOfTheirWays) {
  // Goal: whoever types no name leaves nothing out. Method: two scenarios in four ways each; a
  // number of seeds is of each way, a number of runs of all together, and then it is told what
  // each way was given.
  const Json seeds = run_tool("hunt --seeds 5 --jobs 2 --json").json();
  EXPECT_EQ(seeds["runs"], 40);
  EXPECT_FALSE(seeds.contains("ways"));
  const ToolRun run = run_tool("hunt --for 80runs --jobs 2 --json");
  EXPECT_EQ(run.status, 0) << run.err;
  ASSERT_EQ(run.json()["ways"].size(), 8u) << run.out;
  for (const Json& way : run.json()["ways"]) EXPECT_EQ(way["runs"], 10) << way;
  EXPECT_EQ(run.json()["ways"][5]["way"], "other --faults hostile --crashes 1 --restarts drawn");
  const ToolRun told = run_tool("hunt --for 80runs --jobs 2");
  EXPECT_NE(told.out.find("hunt: 40 runs of other, 40 of toy\n"), std::string::npos) << told.out;
}

TEST(Hunt, WithoutANameFindsTheSameWhateverTheNumberOfProcesses) {
  // Goal: which run is the first that fails follows from the arguments. Method: a seed that comes
  // after more runs than are given out without learning from any.
  std::set<std::string> last;
  for (const char* jobs : {"1", "4"}) {
    const ToolRun run = run_tool(
        std::string("hunt --for 2000runs --set fail_at=41 --shrink-for 0s --jobs ") + jobs);
    EXPECT_EQ(run.status, 1) << run.out;
    last.insert(run.out_lines().back());
  }
  EXPECT_EQ(last.size(), 1u);
  EXPECT_NE(last.begin()->find(" run toy --seed 41 "), std::string::npos) << *last.begin();
}

TEST(Hunt, ReportsTheSmallestSeedThatFails) {
  // Goal: the same report whatever the number of processes. Method: one failing seed, 1 and 4 jobs.
  for (const char* jobs : {"1", "4"}) {
    const ToolRun run =
        run_tool(std::string("hunt other toy --set fail_at=31 --shrink-for 0s --jobs ") + jobs);
    EXPECT_EQ(run.status, 1);
    const std::string last = run.out_lines().back();
    EXPECT_EQ(last.substr(last.find(" run ")),
              " run other --seed 31 --set size=tiny --set fail_at=31");
  }
}

TEST(Hunt, ProcessThatDiesIsAFailureOfItsSeed) {
  // Goal: an abort is attributed to the run that did it, and the rest goes on. Method: abort at 5.
  const ToolRun run = run_tool("hunt toy --seeds 40 --set abort_at=5 --jobs 2 --json");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.json()["seed"], 5);
  EXPECT_EQ(run.json()["failure"]["object"], "signal 6 (Aborted)");
}

TEST(Hunt, ShardsShareTheSeeds) {
  // Goal: each seed in exactly one shard. Method: a failing seed is found by one shard of three.
  int found = 0;
  int runs = 0;
  for (const std::string shard : {"0/3", "1/3", "2/3"}) {
    const ToolRun run = run_tool("hunt toy --seeds 10 --set fail_at=8 --jobs 1 --shard " + shard);
    found += run.status;
    const ToolRun whole = run_tool("hunt toy --seeds 10 --jobs 2 --json --shard " + shard);
    runs += whole.json()["runs"].get<int>();
  }
  EXPECT_EQ(found, 1);
  EXPECT_EQ(runs, 10);
}

TEST(Hunt, ABudgetThatIsSpentEndsIt) {
  // Goal: --for. Method: time of each kind gives some runs and success, a number of runs that many.
  for (const char* budget : {"1s", "1s-cpu"}) {
    const ToolRun run = run_tool(std::string("hunt toy --jobs 1 --json --for ") + budget);
    EXPECT_EQ(run.status, 0);
    EXPECT_GE(run.json()["runs"].get<int>(), 2) << budget;
  }
  for (const char* jobs : {"1", "3"})
    EXPECT_EQ(
        run_tool(std::string("hunt toy other --json --for 7runs --jobs ") + jobs).json()["runs"],
        7);
}

TEST(Hunt, ARunThatDoesNotEndDoesNotKeepAHuntForATime) {
  // Goal: --for is kept whatever a program does. Method: a toy of which the only run, or one of
  // many, never ends.
  const ToolRun only = run_tool("hunt toy --set hang_at=1 --jobs 1 --for 1s --json");
  EXPECT_EQ(only.status, 1) << only.err;
  EXPECT_EQ(only.json()["seed"], 1);
  EXPECT_EQ(only.json()["failure"]["oracle"], "unfinished");
  EXPECT_EQ(only.json()["runs"], 0);
  const ToolRun other = run_tool("hunt toy --set hang_at=4 --jobs 1 --for 1s --json");
  EXPECT_EQ(other.status, 0) << other.err;
  EXPECT_EQ(other.json()["runs"], 3);
  EXPECT_NE(
      other.err.find("hunt: the time is up, and 2 runs have not ended, first: toy with seed 4"),
      std::string::npos)
      << other.err;
}

TEST(Hunt, CrashSweepCrashesEveryWorkerAtEveryEvent) {
  // Goal: one run for each event, and the line that repeats the one that fails. Method: a toy with
  // seven events that does not survive one of the crashes.
  EXPECT_EQ(run_tool("hunt toy --crash-sweep --seeds 3 --jobs 2 --json").json()["runs"], 21);
  const ToolRun run =
      run_tool("hunt toy --crash-sweep --seeds 3 --set fragile_at=2 --jobs 2 --shrink-for 0s");
  EXPECT_EQ(run.status, 1);
  const std::string last = run.out_lines().back();
  EXPECT_EQ(last.substr(last.find(" run ")),
            " run toy --seed 2 --set size=tiny --set fragile_at=2 --crash-at leader:2");
  EXPECT_EQ(run_tool(last.substr(last.find(" run "))).status, 1);
}

TEST(Hunt, FailureIsLeftInTheDirectory) {
  // Goal: --out. Method: read the file back.
  const TemporaryFolder made;
  const std::string folder = made.file("found");
  EXPECT_EQ(run_tool("hunt toy --set fail_at=2 --first-seed 2 --out " + folder).status, 1);
  std::ifstream file(folder + "/failure.json");
  const Json json = Json::parse(file);
  EXPECT_EQ(json["seed"], 2);
  EXPECT_EQ(json["failure"]["oracle"], "toy oracle");
  const ToolRun replayed = run_tool("replay " + folder + "/failure.run");
  EXPECT_EQ(replayed.status, 1) << replayed.err;
  EXPECT_NE(replayed.out.find("toy FAILED with seed 2"), std::string::npos) << replayed.out;
}

TEST(Hunt, TellsAFailureWhoseFilesCannotBeWritten) {
  // Goal: seed, oracle and the command that repeats it, as if nothing were wrong; then a line for
  // each file; what could be written is there. Method: folders that have the names of the files.
  const TemporaryFolder made;
  const std::string folder = made.file("found");
  for (const char* name : {"failure.run", "failure.html"})
    std::filesystem::create_directories(folder + "/" + name + "/full");
  const std::string hunt = "hunt toy --set fail_at=2 --first-seed 2 --jobs 1";
  const ToolRun run = run_tool(hunt + " --out " + folder);
  EXPECT_EQ(run.status, 1);
  const std::string last = run.out_lines().back();
  EXPECT_EQ(last, run_tool(hunt).out_lines().back());
  EXPECT_NE(run.out.find("toy FAILED with seed 2: toy oracle: object 7: it broke"),
            std::string::npos)
      << run.out;
  EXPECT_EQ(run.err,
            "rehearsal hunt: " + folder +
                "/failure.run: cannot be written: Is a directory; make room there, or name "
                "another place\nrehearsal hunt: " +
                folder +
                "/failure.html: cannot be written: Is a directory; make room there, or name "
                "another place\n");
  EXPECT_EQ(Json::parse(read_whole_file(folder + "/failure.json"))["seed"], 2);
  EXPECT_TRUE(std::filesystem::is_regular_file(folder + "/failure.txt"));
}

TEST(Hunt, LeavesNoPartOfAFileOnAFullDisk) {
  // Goal: each file is whole or is not there. Method: a limit of the size of a file, which only the
  // page exceeds; a page of an earlier failure does not stay.
  const TemporaryFolder made;
  const std::string folder = made.file("found");
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/failure.html") << "of an earlier failure";
  const ToolRun run = run_tool("hunt toy --set fail_at=2 --first-seed 2 --jobs 1 --out " + folder,
                               "sh -c 'trap \"\" XFSZ; ulimit -f 16; exec \"$0\" \"$@\"'");
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_NE(run.err.find(folder + "/failure.html: cannot be written: File too large"),
            std::string::npos)
      << run.err;
  EXPECT_FALSE(std::filesystem::exists(folder + "/failure.html"));
  EXPECT_TRUE(read_whole_file(folder + "/failure.run").ends_with("\nend\n"));
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    EXPECT_TRUE(entry.path().filename().string().starts_with("failure.")) << entry.path();
}

TEST(Verify, ADifferenceIsToldWhereNoTraceCanBeWritten) {
  // Goal: exit status 3 and the seed; a trace that is cut off is not compared. Method: no file may
  // have a byte; what the tool says goes into a pipe.
  const ToolRun run = run_tool("verify toy --seeds 5 --set drift_at=4",
                               "sh -c '(trap \"\" XFSZ; ulimit -f 0; \"$0\" \"$@\"; "
                               "echo status $?) 2>&1 | cat'");
  EXPECT_NE(run.out.find("toy FAILED with seed 4: determinism: two runs differed; in what cannot "
                         "be said: "),
            std::string::npos)
      << run.out;
  EXPECT_NE(run.out.find("/first: cannot be written: File too large\n"), std::string::npos)
      << run.out;
  EXPECT_EQ(run.out_lines().back(), "status 3");
}

TEST(Verify, EqualRunsHold) {
  // Goal: exit status 0. Method: a toy that does not look at its environment.
  const ToolRun run = run_tool("verify toy --seeds 30 --json");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.json()["seeds"], 30);
}

TEST(Verify, DifferenceIsExitStatusThreeAndNamesTheEvent) {
  // Goal: nondeterminism, its seed and its first event. Method: a toy that reads a variable.
  const ToolRun run = run_tool("verify toy --seeds 30 --set drift_at=11");
  EXPECT_EQ(run.status, 3);
  EXPECT_NE(run.out.find("event 2 differs:\n  first:  straight\n  second: drifted"),
            std::string::npos)
      << run.out;
  const std::string last = run.out_lines().back();
  EXPECT_EQ(last.substr(last.find(" verify ")),
            " verify toy --first-seed 11 --seeds 1 --set size=tiny --set drift_at=11");
}

TEST(Verify, FailureThatRepeatsIsAFailure) {
  // Goal: exit status 1, not 3. Method: the same oracle fails in both processes.
  const ToolRun run = run_tool("verify toy --seeds 5 --set fail_at=4 --json");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.json()["seed"], 4);
}

}  // namespace
}  // namespace rehearsal::command_line
