#include <gtest/gtest.h>

#include <fstream>

#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::command_line {
namespace {

// Fails because of two decisions of four, under a strategy that one of them stands for.
constexpr const char* kFailing =
    "shrink toy --seed 3 --set needs_at=3 --set followers=3 --strategy walk ";

// The shrunk run, as a file.
constexpr const char* kSmall =
    "# toy FAILED: toy oracle: object 7: it broke\n"
    "run toy\n"
    "--seed 3\n"
    "--set needs_at=3\n"
    "--set followers=1\n"
    "--faults none\n"
    "--benign\n"
    "--decide cut:follower0.0>leader.0#7.0=1  # follower0→leader: the link is cut at message 7\n"
    "--decide hold:follower0.2#0.2=3  # follower0: step 1 of stack 3 lets 3 others go first\n"
    "end\n";

class RunFile : public testing::Test {
 protected:
  void write(const std::string& text) const { std::ofstream(name_) << text; }
  std::string text() const { return read_whole_file(name_); }

  const TemporaryFolder folder_;
  const std::string name_ = folder_.file("failure.run");
};

TEST(Shrink, LeavesTheOptionsAndDecisionsThatTheFailureNeeds) {
  // Goal: smaller options, no strategy, two decisions of four; what failed otherwise on the way is
  // told apart. Method: a toy of which all this is known.
  const ToolRun run = run_tool(std::string(kFailing) + "--json");
  EXPECT_EQ(run.status, 1) << run.err;
  const Json json = run.json();
  EXPECT_EQ(json.at("decisions"),
            (std::vector<std::string>{"cut:1.0>0.0#7.0=1", "hold:1.2#0.2=3"}));
  const std::string replay = json.at("failure").at("replay");
  EXPECT_EQ(replay.substr(replay.find(" run ")),
            " run toy --seed 3 --set needs_at=3 --set followers=1 --faults none "
            "--benign --decide 'cut:follower0.0>leader.0#7.0=1' --decide "
            "'hold:follower0.2#0.2=3'");
  ASSERT_EQ(json.at("other_failures").size(), 1u);
  EXPECT_EQ(json["other_failures"][0].at("oracle"), "other oracle");
  const ToolRun again = run_tool(replay.substr(replay.find(" run ")));
  EXPECT_EQ(again.status, 1);
}

TEST(Shrink, MakesARunSmallThatEndsItsProcess) {
  // Goal: the same as for a failure that an oracle sees. Method: a toy whose check fails because of
  // two decisions of four, and another one because of one of them; a hunt finds and shrinks it.
  const ToolRun run = run_tool("hunt toy --first-seed 3 --seeds 1 --set dies_at=3 --strategy walk");
  EXPECT_EQ(run.status, 1) << run.err;
  const std::string last = run.out_lines().back();
  EXPECT_EQ(last.substr(last.find(" run ")),
            " run toy --seed 3 --set size=tiny --set dies_at=3 --faults none --benign "
            "--decide 'cut:follower0.0>leader.0#7.0=1' --decide 'hold:follower0.2#0.2=3'");
  EXPECT_NE(run.out.find("toy FAILED with seed 3: process: check is_intact: "), std::string::npos)
      << run.out;
  EXPECT_NE(run.out.find("also seen, and not this failure: process: check outcome.ok: "),
            std::string::npos)
      << run.out;
  EXPECT_NE(run.err.find("check failed: is_intact with 3 (in "), std::string::npos) << run.err;
  EXPECT_EQ(run.err.find("check failed: is_intact"), run.err.rfind("check failed: is_intact"));
}

TEST(Shrink, GoesOnForAWhileAsLongAsMoreDecisionsAreLeftThanAnybodyReads) {
  // Goal: a list that can be read, and no more time than that takes. Method: a toy that needs one
  // decision of 400, and fewer runs than finding it takes.
  const Json json = run_tool("shrink toy --seed 3 --set cut_at=3 --for 12runs --json").json();
  EXPECT_LE(json.at("decisions").size(), 40u);
  EXPECT_GT(json.at("decisions").size(), 1u);
  EXPECT_GT(json.at("runs"), 12);
  const Json whole = run_tool("shrink toy --seed 3 --set cut_at=3 --for 100runs --json").json();
  EXPECT_EQ(whole.at("decisions"), (std::vector<std::string>{"cut:1.0>0.0#7.0=1"}));
}

TEST(Shrink, RefusesARunThatIsNotTheSameTwice) {
  // Goal: exit status 3, as of verify. Method: a toy that differs from process to process.
  const ToolRun run = run_tool("shrink toy --seed 3 --set needs_at=3 --set flaky_at=3");
  EXPECT_EQ(run.status, 3);
  EXPECT_NE(run.out.find("two runs of it in two processes were not the same"), std::string::npos)
      << run.out;
}

TEST_F(RunFile, SaysInWordsWhatEachDecisionDoesAndReplays) {
  const ToolRun shrunk = run_tool(kFailing + ("--out " + name_));
  EXPECT_EQ(shrunk.status, 1) << shrunk.err;
  EXPECT_EQ(text(), kSmall);
  const ToolRun replayed = run_tool("replay " + name_);
  EXPECT_EQ(replayed.status, 1) << replayed.err;
  EXPECT_EQ(replayed.out_lines().back(), shrunk.out_lines().back());
}

TEST_F(RunFile, ThatCannotBeWrittenIsToldBehindTheSmallRun) {
  // Goal: the time that shrinking took is not lost. Method: a device that is full.
  const ToolRun full = run_tool(kFailing + std::string("--out /dev/full"));
  const ToolRun whole = run_tool(kFailing + ("--out " + name_));
  EXPECT_EQ(full.status, 1);
  EXPECT_EQ(full.out_lines().back(), whole.out_lines().back());
  ASSERT_FALSE(full.err_lines().empty());
  EXPECT_EQ(full.err_lines().back(),
            "rehearsal shrink: /dev/full: cannot be written: No space left on device; make room "
            "there, or name another place");
}

TEST_F(RunFile, OfAShrinkThatWasEndedIsShrunkFurther) {
  // Goal: nothing is lost. Method: no time at all, then the file that this has left.
  EXPECT_EQ(run_tool(kFailing + ("--for 0s --out " + name_)).status, 1);
  EXPECT_NE(text().find("latency:"), std::string::npos) << text();
  const ToolRun further = run_tool("shrink " + name_ + " --out " + name_);
  EXPECT_EQ(further.status, 1) << further.err;
  EXPECT_NE(text().find("hold:"), std::string::npos) << text();
  EXPECT_EQ(text().find("latency:"), std::string::npos) << text();
}

TEST_F(RunFile, ThatIsCutShortOrForeignOrOfAnotherProgramIsWrongUse) {
  // Goal: exit status 2, one line that begins with the file.
  const std::string small = kSmall;
  const std::pair<std::string, std::string> cases[] = {
      {small.substr(0, small.size() - 4), "is cut short: its last line is not 'end'"},
      {small.substr(0, small.find("hold:")), "is cut short: its last line is not 'end'"},
      {"", "is no file of 'shrink --out': its first line is 'run NAME --seed N'"},
      {"{\"command\": \"hunt\"}\n",
       "is no file of 'shrink --out': its first line is 'run NAME --seed N'"},
      {"run toys\n--seed 1\nend\n", "no scenario 'toys'; did you mean 'toy'?"},
      {"run toy\n--seed 1\n--decide cut:trainer0.0>leader.0#7.0=1  # words\nend\n",
       "--decide: 'cut:trainer0.0>leader.0#7.0=1': the program has no worker 'trainer0'"}};
  for (const auto& [content, why] : cases) {
    write(content);
    const ToolRun run = run_tool("replay " + name_);
    EXPECT_EQ(run.status, 2) << content;
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(run.err, "rehearsal replay: " + name_ + ": " + why + "\n");
  }
}

}  // namespace
}  // namespace rehearsal::command_line
