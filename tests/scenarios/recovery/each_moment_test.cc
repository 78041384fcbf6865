// Goal: several trainers that save one cut together end with the bits of one process, whoever
// crashes and when: there is no moment at which one goes on from another step than the others.
// Method: a crash of each worker at each of its events in a short training.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "command_line/scenario.h"
#include "scenarios/recovery/recovery.h"
#include "sim/cluster.h"

namespace rehearsal::recovery {
namespace {

struct Short {
  sim::RunReport report;
  Results results;
  int went_on = 0;  // lives that began from a checkpoint
};

// Three trainers, two owners of the model.
Short short_training(const std::vector<sim::CrashPoint>& crashes) {
  const Scenario recovery = scenario();
  const Options settings =
      recovery.options.parse({"trainers=3", "steps=2", "save_every=1"}, "tiny");
  Short run;
  Reporter reporter;
  reporter.line = [&run](const std::string& line) {
    if (line.find(" goes on from step ") != std::string::npos) ++run.went_on;
  };
  const Program program =
      recovery.program({.options = settings, .seed = Seed{7}, .reporter = reporter});
  sim::ClusterOptions options{.faults = sim::FaultLevel::none};
  options.restart = sim::Restart::checkpoint;
  options.crash_points = crashes;
  sim::Cluster cluster(Seed{7}, program, options);
  reporter.results.set_declarer([&cluster]() -> std::optional<Results::Declarer> {
    const auto life = cluster.running();
    if (!life) return std::nullopt;
    return Results::Declarer{life->worker.value, life->life};
  });
  run.report = cluster.try_run();
  run.results = reporter.results;
  return run;
}

std::string ends_of(const sim::RunReport& report) {
  std::string ends;
  for (const auto& worker : report.workers)
    ends += worker.name + ", life " + std::to_string(worker.lives) + ": " +
            (worker.error ? worker.error->text : "ended well") + "\n";
  return ends;
}

TEST(EachMoment, OfACrashOfAnybodyEndsWithTheSameBits) {
  const Short undisturbed = short_training({});
  ASSERT_TRUE(undisturbed.report.ok) << sim::describe_failure(undisturbed.report);
  ASSERT_FALSE(undisturbed.results.tensors().empty());
  EXPECT_EQ(undisturbed.went_on, 0);
  for (uint32_t victim = 0; victim < undisturbed.report.workers.size(); ++victim) {
    const auto& worker = undisturbed.report.workers[victim];
    ASSERT_GT(worker.decisions, 50u);
    int went_on = 0;
    for (uint64_t moment = 1; moment < worker.decisions; ++moment) {
      SCOPED_TRACE(worker.name + " crashes at event " + std::to_string(moment));
      const Short run = short_training({{WorkerId{victim}, moment}});
      ASSERT_TRUE(run.report.ok) << sim::describe_failure(run.report);
      ASSERT_EQ(run.results.numbers(), undisturbed.results.numbers()) << ends_of(run.report);
      ASSERT_EQ(run.results.tensors(), undisturbed.results.tensors()) << ends_of(run.report);
      went_on += run.went_on;
    }
    EXPECT_GT(went_on, 20) << worker.name;
  }
}

}  // namespace
}  // namespace rehearsal::recovery
