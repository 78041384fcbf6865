// Files of earlier runs that a broken disk, or somebody else, has changed.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "command_line/hunt_result.h"
#include "command_line/outcome.h"
#include "command_line/replay_arguments.h"
#include "command_line/report_arguments.h"
#include "command_line/run_file.h"
#include "command_line/wrong_use.h"
#include "sim/hunt/choice_lists.h"
#include "sim/hunt/chosen_run.h"
#include "tests/command_line/toy.h"
#include "tests/effort.h"
#include "tests/hostile_text.h"
#include "tests/mutations.h"
#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::command_line {
namespace {

constexpr uint64_t kMutations = 500;
constexpr uint64_t kProcesses = 4;  // of the tool, for each kind of file

class DamagedFiles : public testing::Test {
 protected:
  void write(const std::string& bytes) const {
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << bytes;
  }

  // `read` throws WrongUse with a line that names the file, or takes it, for thousands of changes.
  void expect_refused_or_taken(const std::string& whole, const std::function<void()>& read) const {
    write(whole);
    ASSERT_NO_THROW(read());
    std::mt19937_64 random(whole.size());
    uint64_t refused = 0;
    for (uint64_t i = 0; i < tries(kMutations); ++i) {
      const std::string bad = mutated(whole, random);
      write(bad);
      try {
        read();
      } catch (const WrongUse& wrong) {
        ++refused;
        ASSERT_NE(std::string(wrong.what()).find(file_), std::string::npos) << wrong.what();
      }
    }
    EXPECT_GT(refused, tries(kMutations) / 4);
  }

  // Exit status 2 and one plain line that names the file, wherever the tool refuses it.
  void expect_one_line(const std::string& whole, const std::string& before,
                       const std::string& after = "") const {
    std::mt19937_64 random(2 * whole.size());
    uint64_t refused = 0;
    for (uint64_t i = 0; i < kProcesses; ++i) {
      // Half of them with bytes that a terminal would take for orders.
      std::string bad = mutated(whole, random);
      if (i % 2 == 0) bad.insert(random() % (bad.size() + 1), kHostileText);
      write(bad);
      const ToolRun run = run_tool(before + " " + file_ + " " + after);
      ASSERT_TRUE(run.status >= 0 && run.status <= 3) << run.status << "\n" << run.err;
      EXPECT_TRUE(is_plain(run.err)) << run.err;
      EXPECT_TRUE(is_plain(run.out)) << run.out;
      if (run.status != 2) continue;
      ++refused;
      EXPECT_EQ(run.err_lines().size(), 1u) << run.err;
      EXPECT_EQ(run.out, "");
      EXPECT_NE(run.err.find(file_), std::string::npos) << run.err;
    }
    EXPECT_GT(refused, 0u);
  }

  const TemporaryFolder folder_;
  const std::string file_ = folder_.file("file");
  const std::vector<Scenario> scenarios_ = toy::scenarios();
  const Backends backends_ = toy::backends();
};

TEST_F(DamagedFiles, OfAHunt) {
  // Goal: a shard's result is refused in a line that names it, or merged. Method: drawn changes of
  // one that has failed, which has all fields.
  const std::string whole = run_tool("hunt toy --seeds 6 --set fail_at=3 --jobs 1 --json").out;
  expect_refused_or_taken(whole, [this] { static_cast<void>(merge_results({file_})); });
  expect_one_line(whole, "merge");
}

TEST_F(DamagedFiles, OfAHuntThatHoldsCannotGiveATerminalOrders) {
  // Goal: the names of strategies are text of others, too. Method: one that clears the screen.
  Json json = Json::parse(run_tool("hunt toy --seeds 6 --jobs 1 --json").out);
  json["strategies"] = {{"a", {{"runs", 1}, {"decisions", 2}}},
                        {"\x1b]0;x\x07\x1b[2J", {{"runs", 3}, {"decisions", 4}}}};
  write(json.dump());
  const ToolRun run = run_tool("merge " + file_);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(is_plain(run.out)) << run.out;
  EXPECT_EQ(run.out_lines().back(),
            R"(hunt: \x1b]0;x\x07\x1b[2J 3 runs, 4 decisions; a 1 runs, 2 decisions)");
}

TEST_F(DamagedFiles, OfAShardThatThereIsNotIsRefused) {
  // Goal: what no hunt has run is not counted. Method: beside a whole hunt a second shard of one.
  Json json = Json::parse(run_tool("hunt toy --seeds 6 --jobs 1 --json").out);
  const std::string whole = folder_.file("whole");
  std::ofstream(whole) << json.dump();
  json["shard"] = 1;
  write(json.dump());
  const ToolRun run = run_tool("merge " + whole + " " + file_);
  EXPECT_EQ(run.status, 2) << run.out;
  EXPECT_EQ(run.err, "rehearsal merge: " + file_ + ": not an output of 'hunt --json'\n");
}

TEST_F(DamagedFiles, OfARunToCompareWith) {
  const std::string whole = run_tool("run toy --json").out;
  expect_refused_or_taken(whole, [this] { static_cast<void>(read_comparison(file_)); });
  expect_one_line(whole, "run toy --compare");
}

TEST_F(DamagedFiles, WhoseJsonNestsDeeplyAreRefusedInOneLine) {
  // Goal: no stack is used up. Method: 200,000 levels in place of a number, and where any value may
  // be.
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  const auto refused = [&](Json json, const std::string& path, const std::string& command) {
    json[Json::json_pointer(path)] = "deep";
    std::string text = json.dump();
    text.replace(text.find("\"deep\""), 6, deep);
    write(text);
    const ToolRun run = run_tool(command + " " + file_);
    EXPECT_EQ(run.status, 2) << path;
    EXPECT_EQ(run.out, "");
    return run.err;
  };
  const Json hunt = Json::parse(run_tool("hunt toy --seeds 6 --set fail_at=3 --jobs 1 --json").out);
  for (const char* path : {"/first_seed", "/other_failures", "/unknown"})
    EXPECT_EQ(refused(hunt, path, "merge"),
              "rehearsal merge: " + file_ + ": not an output of 'hunt --json'\n");
  const Json run = Json::parse(run_tool("run toy --json").out);
  EXPECT_EQ(refused(run, "/tensors/0/shape/0", "run toy --compare"),
            "rehearsal run: --compare " + file_ + ": not an output of 'run --json'\n");
}

TEST_F(DamagedFiles, OfARunThatWasWrittenDown) {
  const std::string whole =
      "# toy FAILED\nrun toy\n--seed 3\n--set fail_at=3\n--faults hostile\n"
      "--decide cut:1.0>0.0#7.0=1  # a comment\n--decide hold:1.2#0.2=3\nend\n";
  expect_refused_or_taken(
      whole, [this] { static_cast<void>(parse_replay({file_}, scenarios_, backends_)); });
  expect_refused_or_taken(
      whole, [this] { static_cast<void>(parse_report({file_}, scenarios_, backends_)); });
  expect_one_line(whole, "replay");
  expect_one_line(whole, "report");
}

TEST_F(DamagedFiles, OfARunThatNamesAFileToWriteAreRefusedAndWriteNone) {
  // Goal: a run that was written down repeats itself, and does nothing else. Method: every flag of
  // `run`, `shrink` and `explore` that names a file, starts processes or is typed by people only.
  const std::string victim = folder_.file("victim");
  std::ofstream(victim) << "mine";
  const auto refused = [&](const std::string& text, const std::string& flag) {
    write(text);
    const std::string why =
        file_ + ": holds '" + flag + "', which 'shrink --out' never writes; take that line out\n";
    for (const std::string command : {"replay", "report", "shrink"}) {
      const ToolRun run = run_tool(command + " " + file_);
      EXPECT_EQ(run.status, 2) << command << "\n" << text;
      EXPECT_EQ(run.out, "");
      EXPECT_EQ(run.err, "rehearsal " + command + ": " + why);
    }
    EXPECT_EQ(read_whole_file(victim), "mine") << text;
  };
  for (const std::string flag :
       {"--junit", "--spans", "--compare", "--trace", "--record", "--record-size", "--checkpoints",
        "--net", "--collectives", "--spin", "--peer-timeout", "--out", "--for", "--only"}) {
    refused("run toy\n--seed 3\n" + flag + " " + victim + "\nend\n", flag);
    refused("explore toy\n--schedule 1\n" + flag + " " + victim + "\nend\n", flag);
  }
  refused("run toy\n--exception-traces\nend\n", "--exception-traces");
  refused("run toy\n--junit=" + victim + "\nend\n", "--junit=" + victim);
  refused("run toy\n--seed --junit\n" + victim + "\nend\n", "--junit");
  refused("run --junit\n--seed 1\nend\n", "--junit");
  refused("run toy\n--benign\n--set\n--spans " + victim + "\nend\n", "--spans");
  refused("run toy\nother\nend\n", "other");
}

TEST_F(DamagedFiles, OfAnExplorationHoldAScheduleOrAreRefused) {
  // Goal: a file never starts a search without an end. Method: one of `explore` without a schedule.
  write("explore toy\n--seed 3\nend\n");
  const ToolRun run = run_tool("replay " + file_);
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err, "rehearsal replay: " + file_ +
                         ": names no --schedule; type rehearsal explore NAME to run all of them\n");
}

TEST_F(DamagedFiles, AreNotWhatTheToolItselfHasWrittenDown) {
  // Goal: each flag that a run may be written down with is read again. Method: a run with all of
  // them, and a schedule with all of its own.
  RunSettings settings;
  settings.scenario = &scenarios_.front();
  settings.options = settings.scenario->options.parse({"followers=2"}, "full");
  settings.seed = Seed{7};
  settings.faults = sim::FaultLevel::hostile;
  settings.crashes = 1;
  settings.mad = 1;
  settings.devices = "2";
  settings.restarts = sim::Restart::amnesia;
  settings.long_partitions = true;
  settings.long_pauses = false;
  settings.network = "far";
  settings.without = {"resets", "partitions"};
  settings.crash_at = CrashAt{"leader", 2};
  settings.strategy = "walk";
  settings.redraws = {"1/2"};
  settings.mutants = {"no_fencing"};
  settings.watchdog = 5;
  settings.virtual_time_max = 60;
  settings.benign = true;
  settings.decisions = sim::parse_overrides({"cut:1.0>0.0#7.0=1", "hold:1.2#0.2=3"});
  const sim::RunFailure failure{"toy oracle", "object 7", "it broke"};
  write(run_file_text(settings, failure));
  EXPECT_EQ(read_run_file(file_), run_arguments(settings));
  settings.decisions.clear();
  settings.schedule = "cut:0,1@3=1";
  write(run_file_text(settings, failure));
  EXPECT_EQ(read_run_file(file_), run_arguments(settings));
  EXPECT_EQ(read_run_file(file_).front(), "explore");
  settings = {.scenario = settings.scenario, .options = settings.options, .net = Net::tcp};
  settings.checkpoints = "saved";
  settings.collectives = "gloo";
  EXPECT_EQ(foreign_argument(run_arguments(settings), Net::tcp), std::nullopt);
  EXPECT_EQ(foreign_argument(run_arguments(settings), Net::sim), "--net");
}

TEST_F(DamagedFiles, OfARunOfATest) {
  // REHEARSAL_RUN names it: no file of the tool's, and so another exception.
  const std::string whole = "# comment\n--seed 7\n--faults mild\n--decide cut:1.0>0.0#7.0=1\n";
  expect_refused_or_taken(whole, [this] {
    try {
      static_cast<void>(sim::read_run(file_));
    } catch (const std::invalid_argument& wrong) {
      throw WrongUse(wrong.what());
    }
  });
}

}  // namespace
}  // namespace rehearsal::command_line
