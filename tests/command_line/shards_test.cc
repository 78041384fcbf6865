// The shards of one hunt: their seeds, and their results as one.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "command_line/hunt_tasks.h"
#include "tests/command_line/toy.h"
#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::command_line {
namespace {

using Runs = std::multiset<std::pair<std::string, uint64_t>>;

Runs runs_of(const HuntCommand& command, const Backends& backends) {
  const HuntTasks tasks = seed_tasks(command, backends);
  Runs runs;
  for (size_t task = 0; task < *tasks.count; ++task) {
    const RunSettings settings = tasks.settings_of(task);
    runs.emplace(settings.scenario->name, settings.seed.value);
  }
  return runs;
}

TEST(Shards, CoverExactlyTheRunsOfTheWholeHunt) {
  // Goal: nothing is left out and nothing is run twice. Method: every number of shards up to more
  // than there are seeds, all their runs against those of the hunt without shards.
  const std::vector<Scenario> scenarios = toy::scenarios();
  const Backends backends = toy::backends();
  HuntCommand command;
  for (const Scenario& scenario : scenarios) {
    RunSettings settings;
    settings.scenario = &scenario;
    settings.options = scenario.options.parse({}, "tiny");
    command.scenarios.push_back(settings);
  }
  command.first_seed = 0xa03519d;
  command.seed_count = 11;
  const Runs whole = runs_of(command, backends);
  ASSERT_EQ(whole.size(), 22u);
  for (command.shard_count = 1; command.shard_count <= 14; ++command.shard_count) {
    Runs together;
    for (command.shard = 0; command.shard < command.shard_count; ++command.shard)
      together.merge(runs_of(command, backends));
    EXPECT_EQ(together, whole) << command.shard_count;
    command.shard = 0;
  }
}

class Merge : public testing::Test {
 protected:
  // Runs one shard of the hunt and keeps what it prints.
  std::string shard(const std::string& hunt, const std::string& shard) {
    const std::string file = folder_.file(shard.substr(0, shard.find('/')) + ".json");
    std::ofstream(file) << run_tool(hunt + " --json --shard " + shard).out;
    return file;
  }
  std::string all_shards(const std::string& hunt, int count) {
    std::string files;
    for (int i = 0; i < count; ++i)
      files += " " + shard(hunt, std::to_string(i) + "/" + std::to_string(count));
    return files;
  }

  const TemporaryFolder folder_;
};

// The part that does not depend on how long the hunt took.
Json timeless(Json json) {
  json.erase("wall_seconds");
  json.erase("shard_seconds");
  return json;
}

TEST_F(Merge, ShardsThatHoldGiveTheResultOfTheWholeHunt) {
  // Goal: runs, strategies and identity as without shards. Method: the whole object.
  const std::string hunt = "hunt toy other --seeds 25 --commit a03519d --jobs 1";
  const ToolRun merged = run_tool("merge --json" + all_shards(hunt, 3));
  EXPECT_EQ(merged.status, 0) << merged.err;
  const Json json = merged.json();
  EXPECT_EQ(timeless(json), timeless(run_tool(hunt + " --json").json()));
  EXPECT_EQ(json["runs"], 50);
  EXPECT_EQ(json["runs_of"]["other"], 25);
  EXPECT_EQ(json["first_seed"], 0xa03519d);
  EXPECT_GE(json["shard_seconds"], json["wall_seconds"]);
}

TEST_F(Merge, ThePairsOfAllShardsAreThoseOfTheWholeHunt) {
  // Goal: a row of digits can be trusted whatever machines have counted. Method: the whole object,
  // then a shard that has not counted.
  const std::string hunt = "hunt toy --seeds 30 --coverage --jobs 2";
  const Json merged = run_tool("merge --json" + all_shards(hunt, 3)).json();
  EXPECT_EQ(merged["coverage"], run_tool(hunt + " --json").json()["coverage"]);
  EXPECT_EQ(merged["coverage"]["holding"]["Call"]["owners"], 10);
  EXPECT_NE(run_tool(hunt).out.find("Call               . 1 1 1 1 ."), std::string::npos);
  const std::string zero = shard(hunt, "0/2");
  const std::string one = shard("hunt toy --seeds 30 --jobs 1", "1/2");
  EXPECT_EQ(run_tool("merge " + zero + " " + one).err,
            "rehearsal merge: " + one + ": of another hunt than " + zero + "\n");
}

TEST_F(Merge, TheFailureIsTheOneThatTheWholeHuntReports) {
  // Goal: the smallest failing seed, whichever shard has it. Method: a failing seed in each shard
  // but the first; the last line is that of the hunt without shards.
  const std::string hunt = "hunt toy --seeds 12 --set fail_at=8 --jobs 1";
  const ToolRun whole = run_tool(hunt);
  const ToolRun merged = run_tool("merge" + all_shards(hunt, 4));
  EXPECT_EQ(merged.status, 1) << merged.err;
  EXPECT_EQ(merged.out_lines().back(), whole.out_lines().back());
  EXPECT_EQ(merged.out_lines().end()[-2], "toy FAILED with seed 8: toy oracle: object 7: it broke");
}

TEST_F(Merge, OfSeveralFailuresTheSmallestSeedIsReportedAndThoseWithoutACrashFirst) {
  // Goal: the order in which a hunt reports. Method: outputs of shards with other seeds written in.
  const std::string files = all_shards("hunt toy --seeds 2 --set fail_at=2 --jobs 1", 2);
  Json first = Json::parse(std::ifstream(folder_.file("0.json")));
  Json second = Json::parse(std::ifstream(folder_.file("1.json")));
  const auto failed = [&second](Json json, uint64_t seed, const std::string& crash_at) {
    json["ok"] = false;
    json["scenario"] = "toy";
    json["seed"] = seed;
    json["crash_at"] = crash_at;
    json["failure"] = second["failure"];
    json["as_found"] = second["as_found"];
    return json;
  };
  std::ofstream(folder_.file("0.json")) << failed(first, 5, "").dump();
  std::ofstream(folder_.file("1.json")) << failed(second, 4, "").dump();
  EXPECT_EQ(run_tool("merge --json" + files).json()["seed"], 4);
  std::ofstream(folder_.file("1.json")) << failed(second, 4, "leader:2").dump();
  EXPECT_EQ(run_tool("merge --json" + files).json()["seed"], 5);
}

TEST_F(Merge, ShardsThatDoNotMakeOneHuntAreRefused) {
  // Goal: one line that names the file or the shard. Method: one missing, one twice, one of another
  // hunt, one cut short.
  const std::string hunt = "hunt toy --seeds 6 --jobs 1";
  const std::string zero = shard(hunt, "0/3");
  const std::string one = shard(hunt, "1/3");
  EXPECT_EQ(run_tool("merge " + zero + " " + one).err,
            "rehearsal merge: shard 2/3 is missing: name the files of all\n");
  EXPECT_EQ(run_tool("merge " + zero + " " + zero).err,
            "rehearsal merge: " + zero + ": shard 0/3, which is also in " + zero + "\n");
  const std::string other = shard("hunt toy --seeds 7 --jobs 1", "2/3");
  const ToolRun foreign = run_tool("merge " + zero + " " + other);
  EXPECT_EQ(foreign.status, 2);
  EXPECT_EQ(foreign.err, "rehearsal merge: " + other + ": of another hunt than " + zero + "\n");
  const std::string text = read_whole_file(zero);
  std::ofstream(other) << text.substr(0, text.size() / 2);
  EXPECT_EQ(run_tool("merge " + other).err,
            "rehearsal merge: " + other + ": not an output of 'hunt --json'\n");
}

TEST_F(Merge, OneWholeHuntIsItsOwnResult) {
  // Goal: a job with one machine needs no other script. Method: merge the output without shards.
  const std::string file = folder_.file("whole.json");
  std::ofstream(file) << run_tool("hunt toy --seeds 5 --jobs 1 --json").out;
  const ToolRun merged = run_tool("merge " + file);
  EXPECT_EQ(merged.status, 0) << merged.err;
  EXPECT_EQ(merged.out.substr(0, 19), "hunt: 5 runs hold, ");
}

}  // namespace
}  // namespace rehearsal::command_line
