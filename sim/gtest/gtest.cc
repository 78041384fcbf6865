#include "sim/gtest.h"

#include <gtest/gtest-spi.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "observe/spans.h"

namespace rehearsal::sim {
namespace {

std::string test_name() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  return test == nullptr ? "*" : std::string(test->test_suite_name()) + "." + test->name();
}

// The last cluster's, as `rehearsal hunt --out` leaves them.
class SceneSpans final : public SpanTaker {
 public:
  void begin(const std::vector<std::string>& workers) override {
    workers_ = workers;
    spans_.emplace();
  }
  void on_event(const Event& event) override { spans_->on_event(event); }
  [[nodiscard]] std::string text() const override {
    return observe::perfetto_text(observe::file_of(*spans_, workers_));
  }

 private:
  std::vector<std::string> workers_;
  std::optional<observe::Spans> spans_{std::in_place};
};

// The one line. Flags hold no quote.
std::string command_of(const ChosenRun& run) {
  const auto& arguments = testing::internal::GetArgvs();
  return "REHEARSAL_RUN='" + to_flags(run) + "' " + (arguments.empty() ? "" : arguments.front()) +
         " --gtest_filter=" + test_name();
}

// The first expectation that failed, where and how.
std::optional<RunFailure> first_failure(const testing::TestPartResultArray& parts) {
  for (int i = 0; i < parts.size(); ++i) {
    const testing::TestPartResult& part = parts.GetTestPartResult(i);
    if (!part.failed()) continue;
    const std::string place = std::string(part.file_name() == nullptr ? "" : part.file_name()) +
                              ":" + std::to_string(part.line_number());
    return RunFailure{"expectation " + place, "", place + ": " + part.message()};
  }
  return std::nullopt;
}

// The text of a failed run ends with the line that repeats it, which comes later.
std::string without_command(const RunReport& report) {
  const std::string text = describe_failure(report);
  return text.substr(0, text.rfind("reproduce it with:"));
}

std::optional<RunFailure> run_scene(const Scene& scene, Seed seed, const ClusterOptions& options) {
  testing::TestPartResultArray parts;
  std::optional<RunFailure> thrown;
  {
    const testing::ScopedFakeTestPartResultReporter intercept(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &parts);
    try {
      scene(seed, options);
    } catch (const RunFailed& failed) {
      const RunFailure failure = failed.report().failure.value_or(RunFailure{});
      thrown = RunFailure{failure.oracle, failure.object, without_command(failed.report())};
    } catch (const std::exception& error) {
      thrown = RunFailure{"exception", "", error.what(), std::current_exception()};
    }
  }
  const auto expectation = first_failure(parts);
  return expectation ? expectation : thrown;
}

// The run that REHEARSAL_RUN names. A failure in it is reported where it happens.
testing::AssertionResult repeat(const HuntOptions& hunt_options, const Scene& scene,
                                const ChosenRun& run) {
  RunReport report;
  ClusterOptions options = run.applied_to(hunt_options.cluster);
  options.report = &report;
  options.reproduction = command_of(run);
  options.exception_traces = true;
  const bool failed_before = testing::Test::HasFailure();
  try {
    scene(run.seed, options);
  } catch (const std::exception& error) {
    return testing::AssertionFailure() << "seed " << run.seed.value << ": " << error.what();
  }
  if (testing::Test::HasFailure() && !failed_before)
    return testing::AssertionFailure() << "seed " << run.seed.value << ": an expectation failed";
  if (!report.absent_overrides.empty())
    return testing::AssertionFailure()
           << "seed " << run.seed.value << ": the run holds, and its decision "
           << report.absent_overrides.front() << " does not come up any more";
  return testing::AssertionSuccess();
}

testing::AssertionResult hunt_with(const HuntOptions& options, const Scene& scene,
                                   bool needs_cluster) {
  Environment environment;
  try {
    environment = read_environment();
  } catch (const std::invalid_argument& wrong) {
    return testing::AssertionFailure() << wrong.what();
  }
  if (environment.run) return repeat(options, scene, *environment.run);
  SceneSpans spans;
  const Hunted hunted = hunt_seeds(
      {.options = options,
       .environment = environment,
       .name = test_name(),
       .command_of = command_of,
       .trial = [&scene](Seed seed,
                         const ClusterOptions& cluster) { return run_scene(scene, seed, cluster); },
       .needs_cluster = needs_cluster,
       .spans = &spans});
  if (!hunted.failure && hunted.without_cluster)
    return testing::AssertionFailure()
           << "the scene made no cluster with the options that it was given, so that nothing was "
              "searched: give them to sim::Cluster, or use sim::holds_for_seeds";
  if (!hunted.failure) return testing::AssertionSuccess();
  // GoogleTest closes a parenthesis behind the message; the line stays alone.
  return testing::AssertionFailure() << describe(hunted, command_of(hunted.run)) << "\n";
}

}  // namespace

testing::AssertionResult hunt(const HuntOptions& options, const Scene& scene) {
  return hunt_with(options, scene, /*needs_cluster=*/true);
}

testing::AssertionResult holds_for_seeds(uint64_t seeds,
                                         const std::function<void(Seed)>& scenario) {
  return hunt_with(
      {.seeds = seeds, .first_seed = Seed{1}, .strategy = StrategyKind::timed_swarm},
      [&scenario](Seed seed, const ClusterOptions&) { scenario(seed); },
      /*needs_cluster=*/false);
}

}  // namespace rehearsal::sim
