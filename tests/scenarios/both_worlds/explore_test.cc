#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/mutants.h"
#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::command_line {
namespace {

TEST(Explore, CoversASmallClusterAndSaysSo) {
  // Goal: the search ends because nothing is left. Method: without faults, then the reference used.
  for (const char* use : {"0", "1"}) {
    const ToolRun run =
        run_tool(std::string("explore rref_fork --set faults=0 --json --set use=") + use);
    ASSERT_EQ(run.status, 0) << run.out << run.err;
    EXPECT_EQ(run.json()["complete"], true);
    EXPECT_EQ(run.json()["faults"].size(), 1U);
    EXPECT_GT(run.json()["schedules"], 10);
    EXPECT_EQ(run.json()["schedules"], run.json()["faults"][0]["schedules"]);
  }
}

TEST(Explore, EndsWhenItsBudgetIsSpent) {
  for (const char* budget : {"1s", "1s-cpu", "200runs"}) {
    const ToolRun run = run_tool(std::string("explore storm --json --for ") + budget);
    EXPECT_EQ(run.status, 0) << run.out << run.err;
    EXPECT_EQ(run.json()["complete"], false) << budget;
    EXPECT_GT(run.json()["schedules"], 0) << budget;
  }
  const ToolRun run = run_tool("explore storm --for 200runs");
  EXPECT_NE(run.out.find("explore: 200 schedules in "), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("the budget was spent before all were run"), std::string::npos) << run.out;
}

TEST(Explore, TellsWhichPairsOfMessagesCameUp) {
  const std::string explore = "explore rref_fork --set faults=1 --for 500runs --coverage";
  const Json coverage = run_tool(explore + " --json").json().at("coverage");
  EXPECT_GT(coverage.at("holding").at("Call").at("parked stacks"), 100) << coverage;
  EXPECT_GT(coverage.at("order").at("Call").at("ForkRequest"), 100) << coverage;
  const ToolRun shown = run_tool(explore);
  EXPECT_NE(shown.out.find("messages, and what their receiver held"), std::string::npos);
  EXPECT_NE(shown.out.find("explore: 500 schedules in "), std::string::npos) << shown.out;
  const ToolRun one = run_tool("explore rref_fork --coverage --schedule @3=1");
  EXPECT_EQ(one.status, 2) << one.out;
  EXPECT_NE(one.err.find("--coverage does not go with --schedule"), std::string::npos) << one.err;
}

class ExploreFinds : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(ExploreFinds, WhatIsLeftOutAndPrintsALineThatRepeatsIt) {
  // Goal: a rule of the protocol that is missing shows in some schedule. Method: explore as a user
  // would, run the last line.
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  const auto [mutant, finding] = GetParam();
  const ToolRun explored = run_tool(std::string("explore rref_fork --mutant ") + mutant);
  ASSERT_EQ(explored.status, 1) << explored.out << explored.err;
  EXPECT_NE(explored.out.find(finding), std::string::npos) << explored.out;
  EXPECT_NE(explored.out.find("\n    seconds  creator  owner    user0\n"), std::string::npos)
      << explored.out;
  const std::string last = explored.out_lines().back();
  const size_t command = last.find(" explore rref_fork ");
  ASSERT_NE(command, std::string::npos) << last;
  const ToolRun again = run_tool(last.substr(command));
  EXPECT_EQ(again.status, 1) << again.out << again.err;
  EXPECT_NE(again.out.find(finding), std::string::npos) << again.out;
  EXPECT_EQ(again.out_lines().back(), last);
}

INSTANTIATE_TEST_SUITE_P(Rules, ExploreFinds,
                         testing::Values(std::pair("no_deduplication", "at-most-once: frame"),
                                         std::pair("no_confirmation_gate",
                                                   "rref conservation: fork")),
                         [](const auto& info) { return std::string(info.param.first); });

TEST(Explore, AFailureIsDrawnWithTheEventsThatDecideAndLeavesAFolder) {
  // Goal: what a hunt leaves, of one schedule, for `replay` and `report`. Method: a child that does
  // not accept a fork that was refused: the answer comes to its parent without.
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  namespace fs = std::filesystem;
  const TemporaryFolder made;
  const fs::path folder = made.file("found");
  const ToolRun explored =
      run_tool("explore rref_fork --mutant refused_child_accepts_not --out " + folder.string());
  ASSERT_EQ(explored.status, 1) << explored.out << explored.err;
  EXPECT_NE(explored.out.find("progress: "), std::string::npos) << explored.out;
  EXPECT_NE(explored.out.find(" parts from it at creator:\n"), std::string::npos) << explored.out;
  EXPECT_NE(explored.out.find("\n  it holds: it takes ChildAccept "), std::string::npos)
      << explored.out;
  const std::string last = explored.out_lines().back();
  const std::string run = (folder / "failure.run").string();
  for (const char* file :
       {"failure.json", "failure.html", "failure.trace.json", "failure.spans.json", "failure.txt"})
    EXPECT_GT(fs::file_size(folder / file), 100U) << file;
  EXPECT_TRUE(read_whole_file((folder / "failure.txt").string()).ends_with(last + "\n"));
  EXPECT_TRUE(Json::parse(read_whole_file((folder / "failure.spans.json").string()))
                  .contains("traceEvents"));
  const std::string words = last.substr(last.find(" rref_fork "));
  for (const std::string& again : {"replay " + run, "replay" + words}) {
    const ToolRun replayed = run_tool(again);
    EXPECT_EQ(replayed.status, 1) << again << replayed.err;
    EXPECT_EQ(replayed.out_lines().back(), last) << again;
  }
  for (const std::string& told : {"report " + run, "report" + words}) {
    const ToolRun report = run_tool(told + " --html " + (folder / "again.html").string());
    EXPECT_EQ(report.status, 0) << told << report.err;
    EXPECT_NE(report.out.find("\n  it holds: it takes ChildAccept "), std::string::npos)
        << report.out;
    EXPECT_EQ(read_whole_file((folder / "again.html").string()),
              read_whole_file((folder / "failure.html").string()));
  }
  const ToolRun shrunk = run_tool("shrink " + run);
  EXPECT_EQ(shrunk.status, 2);
  EXPECT_EQ(shrunk.err, "rehearsal shrink: " + run +
                            ": holds a schedule of 'explore', which is small already; type "
                            "rehearsal report " +
                            run + "\n");
}

TEST(Explore, WrongSchedulesAreWrongUse) {
  for (const char* schedule : {"3=1", "cut:0@", "cut:0,0@", "cut:0,9@", "fire:1@", "@3", "@3=0",
                               "@3.=1", "@x=1", "crash:1,2@", "@3=1;4=1"}) {
    const ToolRun run = run_tool("explore rref_fork --schedule '" + std::string(schedule) + "'");
    EXPECT_EQ(run.status, 2) << schedule << run.out;
    EXPECT_EQ(run.err_lines().size(), 1U) << run.err;
  }
  const ToolRun report = run_tool("report rref_fork --schedule '@3.=1'");
  EXPECT_EQ(report.status, 2) << report.out;
  EXPECT_EQ(report.err_lines().size(), 1U) << report.err;
  const ToolRun trace = run_tool("explore rref_fork --trace file");
  EXPECT_EQ(trace.status, 2);
  EXPECT_NE(trace.err.find("needs --schedule"), std::string::npos) << trace.err;
}

TEST(Explore, AScheduleThatIsNotThereIsNoSuccess) {
  const ToolRun run = run_tool("explore rref_fork --schedule '@3=900'");
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.out.find("this run is not there any more"), std::string::npos) << run.out;
}

}  // namespace
}  // namespace rehearsal::command_line
