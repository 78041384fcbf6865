#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <thread>

#include "tests/scenarios/tool_run.h"

namespace rehearsal::command_line {
namespace {

// The first event that a plant changes is the arrival of its call: the fourth of the client.
const std::regex kPlantedKey("frame Call [0-9a-f]{8}#3 at server\\.0 from client");

// The call itself must be among the causes: there the reader finds the function's name.
bool names_the_call(const Json& difference, const std::string& function) {
  return std::ranges::any_of(difference["causes"], [&function](const Json& cause) {
    const std::string line = cause;
    return line.find(" client.0 api_call peer=server ") != std::string::npos &&
           line.find('"' + function) != std::string::npos;
  });
}

class Planted : public testing::TestWithParam<const char*> {
 protected:
  // Verifies the scenario of this name and gives what the report says of the difference.
  Json found(const std::string& name, const std::string& flags = "--seeds 3") {
    const ToolRun run = run_tool("verify " + name + " --json " + flags);
    EXPECT_EQ(run.status, 3) << run.out << run.err;
    if (run.status != 3) return {};
    EXPECT_EQ(run.json()["failure"]["oracle"], "determinism");
    return run.json()["difference"];
  }
};

TEST_P(Planted, IsFoundAndItsFirstEventIsNamed) {
  // Goal: each source of nondeterminism is found, by the event that carries it. Method: verify a
  // program that is deterministic but for it.
  const Json difference = found(GetParam());
  ASSERT_TRUE(difference.is_object());
  EXPECT_EQ(difference["kind"], "event");
  EXPECT_TRUE(std::regex_match(difference["key"].get<std::string>(), kPlantedKey)) << difference;
  EXPECT_TRUE(names_the_call(difference, "planted")) << difference.dump(2);
  EXPECT_NE(difference["first"], difference["second"]);
}

INSTANTIATE_TEST_SUITE_P(Sources, Planted,
                         testing::Values("address_order", "unordered_iteration", "wall_clock",
                                         "thread", "uninitialised_read", "hash_salt", "locale",
                                         "environment", "static_counter", "float_sum_order"),
                         [](const auto& info) { return std::string(info.param); });

// The other process has everything else otherwise, too.
INSTANTIATE_TEST_SUITE_P(Surroundings, Planted,
                         testing::Values("heap_address", "library_address", "stack_address",
                                         "large_block_address", "time_zone", "working_folder",
                                         "tensor"),
                         [](const auto& info) { return std::string(info.param); });

using Verify = Planted;

TEST_F(Verify, PutsTheProcessesOnDifferentCores) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "there is one core";
  EXPECT_TRUE(std::regex_match(found("core")["key"].get<std::string>(), kPlantedKey));
}

// Goal: addresses differ also where the system always gives the same. Method: switch that off.
TEST_F(Verify, MovesMemoryWhereTheSystemDoesNot) {
  const ToolRun possible = run_tool("list", "setarch -R");
  if (possible.status != 0) GTEST_SKIP() << "setarch -R is not allowed here";
  for (const char* name : {"heap_address", "library_address", "large_block_address",
                           "address_order", "unordered_iteration"}) {
    const ToolRun run = run_tool(std::string("verify --seeds 2 ") + name, "setarch -R");
    EXPECT_EQ(run.status, 3) << name << run.out << run.err;
  }
}

TEST_F(Verify, FindsNothingWhereNothingIs) {
  const ToolRun run = run_tool("verify nothing --seeds 20");
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_NE(run.out.find("verify: nothing, 20 seeds, each twice: equal\nthe second process had "),
            std::string::npos)
      << run.out;
}

// Goal: what differs only because other seeds ran before is told apart. Method: a counter that is
// never reset; the second process runs the seeds backwards.
TEST_F(Verify, NamesTheSeedsThatLeaveSomethingBehind) {
  const Json difference = found("static_counter", "--seeds 6 --first-seed 11");
  EXPECT_EQ(difference["after_seeds"].size(), 1u) << difference;
  EXPECT_EQ(found("environment")["after_seeds"].size(), 0u);
  const ToolRun alone = run_tool("verify static_counter --seeds 1");
  EXPECT_EQ(alone.status, 0) << alone.out << alone.err;
  const ToolRun text = run_tool("verify static_counter --seeds 6 --first-seed 11");
  EXPECT_NE(text.out.find("the run leaves something behind in its process: after seed "),
            std::string::npos)
      << text.out;
  const std::string last = text.out_lines().back();
  EXPECT_EQ(last.substr(last.find(" verify ")),
            " verify static_counter --first-seed 11 --seeds 6 --set size=tiny");
  EXPECT_EQ(run_tool(last.substr(last.find(" verify "))).status, 3);
}

TEST_F(Verify, NamesTheResultIfEveryEventIsEqual) {
  const Json difference = found("result");
  EXPECT_EQ(difference["kind"], "result");
  EXPECT_EQ(difference["key"], "number zone");
  EXPECT_EQ(difference["first"], "0.0");
  EXPECT_EQ(difference["second"], "45900.0");
  EXPECT_EQ(found("tensor_result")["key"], "tensor zone");
}

TEST_F(Verify, EndsWithTheLineThatShowsTheDifferenceAgain) {
  const ToolRun run =
      run_tool("verify environment --seeds 3 --first-seed 5 --faults hostile --strategy pct");
  EXPECT_EQ(run.status, 3);
  EXPECT_NE(run.out.find("environment FAILED with seed 5: determinism: event "), std::string::npos)
      << run.out;
  EXPECT_NE(run.out.find("\nit follows from:\n"), std::string::npos) << run.out;
  const std::string last = run.out_lines().back();
  EXPECT_EQ(last.substr(last.find(" verify ")),
            " verify environment --first-seed 5 --seeds 1 --set size=tiny --faults hostile "
            "--strategy pct");
  const ToolRun again = run_tool(last.substr(last.find(" verify ")));
  EXPECT_EQ(again.status, 3);
  EXPECT_EQ(again.out_lines().back(), last);
}

TEST_F(Verify, ClockAndThreadOfTheProgramItselfEndTheRunWithTheCallStack) {
  // Goal: the guard is quicker than any comparison, and says who it was. Method: the same mistakes
  // without a permission.
  for (const auto& [name, function, culprit] :
       {std::tuple("guarded_clock", "std::chrono::steady_clock::now", "read_the_clock()"),
        std::tuple("guarded_thread", "std::thread", "race_a_thread()")}) {
    const ToolRun run = run_tool(std::string("run ") + name);
    EXPECT_EQ(run.status, 1);
    EXPECT_NE(run.err.find(std::string("simulated code called ") + function), std::string::npos)
        << run.err;
    EXPECT_NE(run.err.find(culprit), std::string::npos) << run.err;
    const ToolRun verified = run_tool(std::string("verify ") + name + " --seeds 2");
    EXPECT_NE(verified.status, 0);
    EXPECT_NE(verified.err.find(culprit), std::string::npos) << verified.err;
  }
}

}  // namespace
}  // namespace rehearsal::command_line
