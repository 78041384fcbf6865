// Each rule of the protocol that can be left out, hunted once; `./dev mutants` measures how soon
// each is found, and shrinks it.
#include "core/base/mutants.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/scenarios/mutants/forked_hunt.h"
#include "tests/scenarios/mutants/hunted_scenarios.h"
#include "tests/scenarios/tool_run.h"
#include "tests/whole_file.h"

namespace rehearsal::command_line {
namespace {

// Which oracle must notice, where only one can.
const std::map<std::string, std::string>& oracles() {
  static const std::map<std::string, std::string> table = {
      {"no_deduplication", "at-most-once: frame"},
      {"deduplication_forgotten", "at-most-once: frame"},
      {"no_confirmation_gate", "rref conservation: fork"},
      {"confirm_never_refuses", "rref conservation: fork"},
      {"delete_before_answer", "rref conservation: fork"},
      {"accept_on_adoption", "rref conservation: fork"},
      {"pins_survive_fencing", "pins its parent"},
      {"no_fencing", "waits for"},
      {"forget_dead_epochs", "context pairing: pass"}};
  return table;
}

// The words of a hunt beside the seeds, those of `./dev mutants`: the scenario, if it is not storm,
// and flags where the mutant is rare.
std::vector<std::string> hunt_of(const std::string& mutant) {
  static const Json table = Json::parse(read_whole_file("tests/mutants/flags.json"));
  std::vector<std::string> words = table.value(mutant, std::vector<std::string>{});
  if (words.empty() || words.front().starts_with("-")) words.insert(words.begin(), "storm");
  words.insert(words.begin(), "hunt");
  words.insert(words.end(), {"--seeds", "10000", "--mutant", mutant});
  return words;
}

// Behaviour that no simulated network has is left to hand-written tests: sim/mutants.md says which.
std::vector<std::string> hunted_mutants() {
  std::vector<std::string> names = mutant_names();
  std::erase(names, "destination_unchecked");
  return names;
}

class TheHuntFinds : public testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TheHuntFinds);  // Where there are no mutants.

TEST_P(TheHuntFinds, WhatIsLeftOut) {
  // Goal: the simulator finds the absence of each rule, and what it says repeats the failure.
  // Method: the seeds of a hunt, in their order; run the words that repeat the first that fails.
  const ForkedHunt hunt(hunted_scenarios());
  const auto found = hunt.hunt(hunt_of(GetParam()));
  ASSERT_TRUE(found.has_value());
  const auto oracle = oracles().find(GetParam());
  if (oracle != oracles().end()) {
    EXPECT_NE(found->failure.find(oracle->second), std::string::npos) << found->failure;
  }
  const auto again = hunt.run(found->run);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->run, found->run);
  EXPECT_EQ(again->failure, found->failure);
}

INSTANTIATE_TEST_SUITE_P(Rules, TheHuntFinds, testing::ValuesIn(hunted_mutants()),
                         [](const auto& info) { return info.param; });

TEST(ForkedHunt, FindsNothingWhereNothingIsLeftOut) {
  // Goal: what finds the mutants is their absence, not the hunt. Method: the same seeds without.
  const ForkedHunt storm({storm_scenario()});
  EXPECT_FALSE(storm.hunt({"hunt", "storm", "--seeds", "100"}).has_value());
}

TEST(ForkedHunt, IsTheHuntOfTheTool) {
  // Goal: the tool finds the same, and its last line repeats it. Method: mutants, hunted by both,
  // one of which ends its process.
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  const ForkedHunt storm({storm_scenario()});
  for (const std::string mutant : {"no_fencing", "handle_released_in_place"}) {
    const std::string flags = "hunt storm --seeds 10000 --shrink-for 0s --mutant " + mutant;
    const ToolRun hunt = run_tool(flags);
    ASSERT_EQ(hunt.status, 1) << hunt.out << hunt.err;
    const std::string last = hunt.out_lines().back();
    const std::string words = last.substr(last.find(" run "));
    const auto found = storm.hunt({"hunt", "storm", "--seeds", "10000", "--mutant", mutant});
    ASSERT_TRUE(found.has_value());
    EXPECT_TRUE(shell_command("rehearsal", found->run).ends_with("rehearsal" + words))
        << shell_command("rehearsal", found->run) << " is not " << words;
    const ToolRun again = run_tool(words);
    EXPECT_NE(again.status, 0) << again.out << again.err;
  }
}

TEST(Mutants, AreNotInAProduct) {
  // Goal: one line and exit status 2. Method: ask a build without for one.
  if (kHasMutants) GTEST_SKIP() << "this build has mutants";
  for (const char* words : {"hunt storm --mutant no_fencing", "list --mutants"}) {
    const ToolRun run = run_tool(words);
    EXPECT_EQ(run.status, 2) << words;
    EXPECT_EQ(run.err_lines().size(), 1u) << run.err;
    EXPECT_NE(run.err.find("this build has none"), std::string::npos) << run.err;
  }
}

}  // namespace
}  // namespace rehearsal::command_line
