// Each rule of the protocol that can be left out, hunted once; `./dev mutants` measures how soon
// each is found, and shrinks it.
#include "core/session/mutants.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

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

// The flags that a hunt needs beside the seeds, where it is rare: those of `./dev mutants`.
std::string flags_for(const std::string& mutant) {
  static const Json table = Json::parse(read_whole_file("tests/mutants/flags.json"));
  std::string flags;
  for (const Json& word : table.value(mutant, Json::array()))
    flags += " " + word.get<std::string>();
  return flags;
}

// Behaviour that no simulated network has is left to hand-written tests: sim/mutants.md says which.
std::vector<std::string> hunted_mutants() {
  std::vector<std::string> names = mutant_names();
  std::erase(names, "destination_unchecked");
  return names;
}

class StormFinds : public testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StormFinds);  // Where there are no mutants.

TEST_P(StormFinds, WhatIsLeftOut) {
  // Goal: the simulator finds the absence of each rule, and the printed line repeats the failure.
  // Method: hunt as a user would; run the last line.
  const ToolRun hunt = run_tool("hunt storm --seeds 10000 --shrink-for 0s --mutant " + GetParam() +
                                flags_for(GetParam()));
  ASSERT_EQ(hunt.status, 1) << hunt.out << hunt.err;
  const auto oracle = oracles().find(GetParam());
  if (oracle != oracles().end()) {
    EXPECT_NE(hunt.out.find(oracle->second), std::string::npos) << hunt.out;
  }
  const std::string last = hunt.out_lines().back();
  ASSERT_NE(last.find(" run storm --seed "), std::string::npos) << hunt.out;
  EXPECT_NE(last.find(" --mutant " + GetParam()), std::string::npos) << last;
  const ToolRun again = run_tool(last.substr(last.find(" run ")));
  EXPECT_EQ(again.status, 1) << again.out << again.err;
  // A run whose process ends is reported on standard error.
  EXPECT_EQ((again.out.empty() ? again.err_lines() : again.out_lines()).back(), last);
}

INSTANTIATE_TEST_SUITE_P(Rules, StormFinds, testing::ValuesIn(hunted_mutants()),
                         [](const auto& info) { return info.param; });

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
