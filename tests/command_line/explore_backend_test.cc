#include "command_line/explore_backend.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/api/worker.h"

namespace rehearsal::command_line {
namespace {

int64_t twice(int64_t number) { return 2 * number; }

// Two workers, one call.
Scenario calling() {
  Scenario scenario;
  scenario.name = "calling";
  scenario.options.integer("faults", {.full = 1, .tiny = 1, .min = 0, .max = 1, .meaning = ""});
  scenario.program = [](const ScenarioRun&) {
    FunctionRegistry registry;
    registry.function("twice", &twice);
    Program program(std::move(registry));
    program.worker("caller", [](Worker& worker) {
      static_cast<void>(worker.rpc_sync("callee", &twice, int64_t{3}));
    });
    program.worker("callee");
    return program;
  };
  return scenario;
}

TEST(ExploreBackend, NodesHaveTheLimitsOfTheScenario) {
  // Goal: what is explored is the program that a run has. Method: a scenario that notes for what it
  // was asked.
  Scenario scenario = calling();
  std::vector<ScenarioFaults> plans;
  scenario.adjust_node = [&plans](NodeOptions& node, const ScenarioFaults& plan, Seed seed) {
    EXPECT_EQ(seed.value, 7u);
    plans.push_back(plan);
    node.execution_limit = 1;
  };
  const auto explored_with = [&scenario, &plans](const std::string& faults) {
    plans.clear();
    RunSettings settings;
    settings.scenario = &scenario;
    settings.options = scenario.options.parse({"faults=" + faults}, "tiny");
    settings.seed = Seed{7};
    return explore_all(settings, [](const ExploreProgress&) { return true; });
  };
  const ExploreOutcome calm = explored_with("0");
  EXPECT_TRUE(calm.complete);
  EXPECT_FALSE(calm.failure);
  ASSERT_FALSE(plans.empty());
  EXPECT_EQ(plans.front().crashes, 0);
  EXPECT_FALSE(plans.front().long_partitions);
  static_cast<void>(explored_with("1"));
  EXPECT_EQ(plans.front().crashes, 1);
  EXPECT_TRUE(plans.front().long_partitions);
}

TEST(ExploreBackend, RunsWithTheGivenFaultsOnly) {
  // Goal: a part of an exploration by itself. Method: its rows beside those of the whole.
  const Scenario scenario = calling();
  RunSettings settings;
  settings.scenario = &scenario;
  settings.options = scenario.options.parse({"faults=1"}, "tiny");
  const auto rows = [&settings] {
    std::vector<std::pair<std::string, uint64_t>> found;
    for (const auto& row : explore_all(settings, [](const auto&) { return true; }).rows)
      found.emplace_back(row.faults, row.schedules);
    return found;
  };
  const auto all = rows();
  settings.only_faults = {"crash:1", "none"};
  const auto two = rows();
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[1], all.front());
  EXPECT_NE(std::find(all.begin(), all.end(), two[0]), all.end());
  for (const char* wrong : {"crash:2", "crash", "cut:0", "rain", "", "crash:1;crash:1"}) {
    settings.only_faults = {wrong};
    EXPECT_THROW(check_faults(settings), std::invalid_argument) << wrong;
  }
}

TEST(ExploreBackend, AVerdictThatThrowsFailsTheRun) {
  Scenario scenario = calling();
  scenario.verdict = [](const Results&, const ScenarioFaults&) -> std::optional<std::string> {
    throw std::out_of_range("no such result");
  };
  RunSettings settings;
  settings.scenario = &scenario;
  settings.options = scenario.options.parse({"faults=0"}, "tiny");
  const ExploreOutcome outcome = explore_all(settings, [](const auto&) { return true; });
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->oracle, "result");
  EXPECT_NE(outcome.failure->message.find("its verdict threw std::out_of_range: no such result"),
            std::string::npos)
      << outcome.failure->message;
}

TEST(ExploreBackend, ABudgetEndsInTheMiddleOfARun) {
  // Goal: `explore --for` is kept, however long one schedule is. Method: a program that never ends,
  // and a caller that has enough at the hundredth question.
  Scenario scenario = calling();
  scenario.program = [](const ScenarioRun&) {
    FunctionRegistry registry;
    registry.function("twice", &twice);
    Program program(std::move(registry));
    program.worker("caller", [](Worker& worker) {
      while (true) static_cast<void>(worker.rpc_sync("callee", &twice, int64_t{3}));
    });
    program.worker("callee");
    return program;
  };
  RunSettings settings;
  settings.scenario = &scenario;
  settings.options = scenario.options.parse({"faults=0"}, "tiny");
  uint64_t asked = 0;
  const ExploreOutcome outcome =
      explore_all(settings, [&asked](const ExploreProgress&) { return ++asked < 100; });
  EXPECT_EQ(asked, 100u);
  EXPECT_FALSE(outcome.complete);
  EXPECT_FALSE(outcome.failure);
  ASSERT_EQ(outcome.rows.size(), 1u);
  EXPECT_EQ(outcome.rows.front().schedules, 0u);
}

}  // namespace
}  // namespace rehearsal::command_line
