// Goal: a verdict that throws fails the run, and its story ends where it threw. Method: a run with
// one of its own, whose history is read back.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "command_line/backends.h"
#include "core/api/worker.h"
#include "sim/explain/chronicle.h"
#include "sim/explain/history_file.h"
#include "sim/explain/story.h"
#include "tests/temporary_folder.h"

namespace rehearsal::command_line {
namespace {

constexpr int kThrows = __LINE__ + 2;
std::optional<std::string> judge(const Results&, const ScenarioFaults&) {
  return std::vector<std::string>{}.at(3);
}

Scenario sleeping() {
  Scenario scenario;
  scenario.name = "sleeping";
  scenario.program = [](const ScenarioRun&) {
    Program program{FunctionRegistry()};
    program.worker("only", [](Worker& worker) { worker.sleep(std::chrono::seconds(2)); });
    return program;
  };
  scenario.verdict = &judge;
  return scenario;
}

TEST(Verdict, ThatThrowsIsAFailureAndIsToldWhereItThrew) {
  const Scenario scenario = sleeping();
  const TemporaryFolder folder;
  const std::string file = folder.file("history");
  RunSettings settings;
  settings.scenario = &scenario;
  settings.faults = sim::FaultLevel::none;
  settings.history_file = file;
  Reporter silent{.line = [](const std::string&) {}, .progress = [](const std::string&) {}};
  const RunOutcome outcome = shipped_backends().simulate(settings, silent);
  ASSERT_FALSE(outcome.ok);
  EXPECT_EQ(outcome.failure->oracle, "result");
  EXPECT_EQ(outcome.failure->object, "sleeping");
  const std::string& message = outcome.failure->message;
  EXPECT_TRUE(message.starts_with("its verdict threw std::out_of_range: vector")) << message;
  const std::string here = "verdict_test.cc:" + std::to_string(kThrows);
  EXPECT_NE(message.find(here), std::string::npos) << message;

  std::ifstream written(file);
  const sim::Chronicle chronicle = sim::chronicle_of(sim::read_history(written));
  ASSERT_TRUE(chronicle.failed_at.has_value());
  const sim::Entry& entry = chronicle.moments[*chronicle.failed_at].entry;
  EXPECT_EQ(entry.kind, sim::EntryKind::thrown);
  EXPECT_GE(entry.when, Instant{} + std::chrono::seconds(2));
  const std::vector<sim::ThrownLine> lines = sim::thrown_lines(chronicle, 9);
  ASSERT_GE(lines.size(), 2u);
  EXPECT_TRUE(lines[0].text.starts_with("thrown in the verdict: std::out_of_range: vector"))
      << lines[0].text;
  EXPECT_NE(lines[1].text.find("judge"), std::string::npos) << lines[1].text;
  EXPECT_TRUE(lines[1].text.ends_with(here)) << lines[1].text;
}

}  // namespace
}  // namespace rehearsal::command_line
