// Goal: an exception of the scene itself is told where it was thrown, among what its cluster did.
// Method: scenes that throw before, between and after the steps of a cluster.
#include "sim/hunt/scene_history.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/explain/story.h"
#include "sim/explain/text_diagram.h"
#include "tests/sim/adding_program.h"

namespace rehearsal::sim {
namespace {

constexpr int kThrows = __LINE__ + 2;
void judge(bool wrong) {
  if (wrong) throw std::out_of_range("no such row");
}

// Given the options for its cluster, the scene leaves this.
Chronicle chronicle_of(const std::function<void(const ClusterOptions&)>& scene) {
  SceneHistory history;
  ClusterOptions options{.faults = FaultLevel::none};
  options.history = &history;
  std::exception_ptr thrown;
  try {
    scene(options);
  } catch (const std::exception&) {
    thrown = std::current_exception();
  }
  history.ended_by(thrown);
  return history.chronicle();
}

TEST(SceneHistory, AThrowAfterTheRunIsWhereItFails) {
  const Program program = adding_program();
  const Chronicle chronicle = chronicle_of([&program](const ClusterOptions& options) {
    Cluster(Seed{1}, program, options).run();
    judge(true);
  });
  ASSERT_TRUE(chronicle.failed_at.has_value());
  EXPECT_EQ(*chronicle.failed_at, chronicle.moments.size() - 1);
  const Entry& entry = chronicle.moments.back().entry;
  EXPECT_EQ(entry.kind, EntryKind::thrown);
  EXPECT_EQ(entry.worker, kNoWorker);
  EXPECT_EQ(entry.text, "std::out_of_range: no such row");
  const auto lines = thrown_lines(chronicle, 1);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].text, "thrown in the scene: std::out_of_range: no such row");
  EXPECT_TRUE(lines[1].text.starts_with("  judge ")) << lines[1].text;
  EXPECT_TRUE(lines[1].text.ends_with("scene_history_test.cc:" + std::to_string(kThrows)))
      << lines[1].text;
  const std::string diagram = text_diagram(chronicle, {.title = "", .failure = "exception"});
  EXPECT_NE(diagram.find("fails here: throws std::out_of_range: no such row"), std::string::npos)
      << diagram;
}

TEST(SceneHistory, AThrowInTheMiddleOfTheRunStandsThere) {
  // Goal: what the end of the cluster adds comes after it. Method: the instants of the moments.
  const Program program = adding_program();
  const Instant thrown_at = Instant{} + std::chrono::milliseconds(5);
  const Chronicle chronicle = chronicle_of([&](const ClusterOptions& options) {
    Cluster cluster(Seed{1}, program, options);
    cluster.advance(std::chrono::milliseconds(5));
    EXPECT_EQ(cluster.now(), thrown_at);
    judge(true);
  });
  ASSERT_TRUE(chronicle.failed_at.has_value());
  ASSERT_GT(*chronicle.failed_at, 0u);
  for (size_t i = 0; i < *chronicle.failed_at; ++i)
    EXPECT_LE(chronicle.moments[i].entry.when, thrown_at) << i;
  EXPECT_EQ(chronicle.moments[*chronicle.failed_at].entry.kind, EntryKind::thrown);
}

TEST(SceneHistory, AThrowThatIsCaughtAndOneWithoutAClusterAreNoFailure) {
  const Program program = adding_program();
  const Chronicle caught = chronicle_of([&program](const ClusterOptions& options) {
    Cluster cluster(Seed{1}, program, options);
    cluster.run();
    EXPECT_THROW(judge(true), std::out_of_range);
  });
  EXPECT_FALSE(caught.failed_at.has_value());
  EXPECT_TRUE(chronicle_of([](const ClusterOptions&) { judge(true); }).moments.empty());
}

TEST(SceneHistory, ARunThatFailedBeforeFailsThere) {
  Program program{FunctionRegistry()};
  program.worker("only", [](Worker&) { judge(true); });
  const Chronicle chronicle = chronicle_of([&program](const ClusterOptions& options) {
    Cluster cluster(Seed{1}, program, options);
    if (!cluster.try_run().ok) throw std::runtime_error("as the report says");
  });
  ASSERT_TRUE(chronicle.failed_at.has_value());
  EXPECT_EQ(chronicle.moments[*chronicle.failed_at].entry.worker, 0u);
  EXPECT_EQ(chronicle.moments[*chronicle.failed_at].entry.text, "std::out_of_range: no such row");
}

}  // namespace
}  // namespace rehearsal::sim
