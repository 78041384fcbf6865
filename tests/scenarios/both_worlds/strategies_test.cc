// Strategies and shrinking as a user has them: through the command line, on the shipped scenarios.
#include <gtest/gtest.h>

#include "tests/scenarios/tool_run.h"

namespace rehearsal::command_line {
namespace {

TEST(Strategy, ARunOfUrwSaysWhatItLearntAndIsRepeatedByThat) {
  // Goal: a printed strategy is the whole strategy. Method: the same fingerprint from the text that
  // the run printed, in another process.
  for (const char* name : {"urw", "surw"}) {
    const std::string line =
        "run storm --set size=tiny --seed 5 --faults mild --crashes 0 --partitions short --pauses "
        "short --json --strategy ";
    const Json first = run_tool(line + name).json();
    const std::string learnt = first.at("strategy");
    EXPECT_TRUE(learnt.starts_with(std::string(name) + ":")) << learnt;
    EXPECT_NE(learnt.find("s0.1="), std::string::npos) << learnt;
    const Json second = run_tool(line + learnt).json();
    EXPECT_EQ(second.at("fingerprint"), first.at("fingerprint"));
    EXPECT_EQ(second.at("strategy"), learnt);
  }
}

TEST(Strategy, WhatCannotBeIsWrongUse) {
  for (const auto& [flags, why] :
       {std::pair{"--strategy best", "--strategy best: "},
        std::pair{"--strategy pct:x=3", "pct takes d and k, for example pct:d=3,k=480"},
        std::pair{"--strategy guided", "--strategy guided: goes on from other runs"},
        std::pair{"--redraw 7", "--redraw '7' is no redraw"},
        std::pair{"--benign --decide cut:nobody.0\\>worker1.0#7.0=1", "no worker 'nobody'"}}) {
    const ToolRun run = run_tool(std::string("run storm ") + flags);
    EXPECT_EQ(run.status, 2) << run.out;
    EXPECT_EQ(run.err_lines().size(), 1u) << run.err;
    EXPECT_NE(run.err.find(why), std::string::npos) << run.err;
  }
}

TEST(Hunt, LearnsTheSameWhateverTheNumberOfProcesses) {
  // Goal: a hunt is a function of its arguments. Method: what each strategy was given, with one
  // process and with three, beyond the runs that learn nothing.
  const auto strategies = [](const char* jobs) {
    const ToolRun run = run_tool(std::string("hunt storm --seeds 400 --json --jobs ") + jobs);
    EXPECT_EQ(run.status, 0) << run.err;
    return run.json().at("strategies");
  };
  const Json one = strategies("1");
  EXPECT_EQ(one, strategies("3"));
  EXPECT_TRUE(one.contains("guided")) << one.dump();
  EXPECT_GT(one.at("guided").at("runs"), 5);
}

TEST(Hunt, DelayBoundingTriesEveryScheduleAndSaysSo) {
  // Goal: the certificate. Method: with one deviation there are as many schedules as choices can
  // deviate, and one more; parts of the work add up to the whole.
  const std::string line =
      "hunt storm --set operations=2 --set workers=2 --faults none --crashes 0 --partitions short "
      "--pauses short --first-seed 3 "
      "--strategy delays:bound=1 ";
  const ToolRun run = run_tool(line);
  EXPECT_EQ(run.status, 0) << run.err;
  const Json whole = run_tool(line + "--json").json().at("certificates").at(0);
  const uint64_t choices = whole.at("choices");
  EXPECT_GT(choices, 20u);
  EXPECT_EQ(whole.at("schedules"), choices + 1);
  EXPECT_EQ(whole.at("complete"), true);
  EXPECT_EQ(run.out,
            "hunt: storm, seed 3: no failure with at most 1 deviation from first come, "
            "first served, in " +
                std::to_string(choices) + " choices: " + std::to_string(choices + 1) +
                " schedules\n");
  uint64_t sum = 0;
  for (const char* shard : {"0/2", "1/2"})
    sum += run_tool(line + "--json --shard " + shard)
               .json()
               .at("certificates")
               .at(0)
               .at("schedules")
               .get<uint64_t>();
  EXPECT_EQ(sum, choices + 1);
}

}  // namespace
}  // namespace rehearsal::command_line
