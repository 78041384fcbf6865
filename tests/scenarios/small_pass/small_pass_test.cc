// Every order of the messages of one backward pass over three workers, also with a crash in it.
#include "scenarios/small_pass/small_pass.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/mutants.h"
#include "sim/explore/explorer.h"
#include "tests/effort.h"
#include "tests/pins.h"

namespace rehearsal::sim::explore {
namespace {

Exploration explore_story(const std::vector<std::string>& set, const std::string& left_out = {},
                          const std::vector<std::vector<Transition>>& faults = {{}}) {
  const Scenario scenario = small_pass_scenario();
  Reporter reporter;
  const Options story = scenario.options.parse(set, "tiny");
  ExploreOptions options;
  options.only = faults;
  options.adjust_node = [left_out](NodeOptions& node) {
    if (!left_out.empty()) node.mutants = {left_out};
  };
  return explore(scenario.program({story, Seed{1}, reporter}), options);
}

std::string failure_of(const Exploration& explored) {
  if (!explored.failing) return {};
  return describe_failure(explored.report) + "\nrehearsal explore small_pass --schedule '" +
         to_string(*explored.failing) + "'";
}

TEST(SmallPass, EveryScheduleHolds) {
  // Goal: no order gives a wrong gradient, or leaves one. Method: all schedules of each story, as
  // many as there were.
  const Pins pins("tests/scenarios/small_pass");
  for (const char* diamond : {"diamond=0", "diamond=1"})
    for (const char* unused : {"unused=0", "unused=1"}) {
      const Exploration explored = explore_story({diamond, unused});
      EXPECT_EQ(failure_of(explored), "");
      EXPECT_TRUE(explored.complete);
      EXPECT_TRUE(pins.hold(std::string(diamond) + " " + unused, explored.schedules()));
    }
}

TEST(SmallPass, EveryScheduleWithACrashHolds) {
  // Goal: whoever dies in a pass, and whenever the others hear of it, nobody keeps the gradients of
  // half a pass. Method: all schedules of the story without an unused result and with a crash of
  // the leader; with effort, of any worker.
  for (const char* crash : {"crash:0", "crash:1", "crash:2"}) {
    if (effort() == 1 && std::string(crash) != "crash:0") continue;
    const Exploration explored =
        explore_story({"diamond=1", "unused=0"}, {}, {parse_faults(crash, 3)});
    EXPECT_EQ(failure_of(explored), "");
    EXPECT_TRUE(explored.complete);
    EXPECT_GT(explored.schedules(), 5'000u);
  }
}

TEST(SmallPass, ARuleThatIsLeftOutIsFound) {
  // Goal: the search sees what it is for. Method: leave out each.
  if (!kHasMutants) GTEST_SKIP() << "this build cannot leave out rules";
  for (const char* rule : {"undecided_ignored", "pass_not_resumed", "mark_answered_at_once"})
    EXPECT_NE(failure_of(explore_story({}, rule)), "") << rule;
}

}  // namespace
}  // namespace rehearsal::sim::explore
