#include "command_line/explore_backend.h"

#include <algorithm>

#include "command_line/run_stream.h"
#include "command_line/spans_file.h"
#include "core/base/user_code.h"
#include "sim/explore/explorer.h"
#include "sim/world/coverage.h"

namespace rehearsal::command_line {
namespace {

namespace explore = sim::explore;

// A scenario, explored: its program, and what it says of its results.
class Exploring {
 public:
  explicit Exploring(const RunSettings& settings)
      : settings_(settings), program_(settings.program(reporter_)) {
    options_.seed = settings.seed;
    options_.strict_leaks = !settings.scenario->allows_leaks;
    if (settings.options.all().contains("faults"))
      options_.faults_max = static_cast<size_t>(settings.options.integer("faults"));
    for (const std::string& faults : settings.only_faults) {
      options_.only.push_back(explore::parse_faults(faults, program_.names().size()));
      options_.faults_max = std::max(options_.faults_max, options_.only.back().size());
    }
    options_.adjust_node = [this](NodeOptions& node) {
      if (settings_.scenario->adjust_node)
        settings_.scenario->adjust_node(node, worst_plan(), settings_.seed);
      node.mutants = settings_.mutants;
    };
    if (settings.tell_coverage) options_.coverage = &coverage_;
    options_.before_run = [this] {
      reporter_.results = {};
      count_coverage();
    };
    if (settings.scenario->verdict)
      options_.judge = [this](const explore::Schedule& schedule) { return judge(schedule); };
  }

  ExploreOutcome run(const std::function<bool(const ExploreProgress&)>& go_on) {
    options_.go_on = [&go_on](const explore::ExploreOptions::Progress& progress) {
      return go_on({.fault_sets = progress.fault_sets,
                    .fault_sets_all = progress.fault_sets_all,
                    .schedules = progress.schedules,
                    .part = progress.part});
    };
    const explore::Exploration found = explore::explore(program_, options_);
    count_coverage();
    ExploreOutcome outcome{.coverage = coverage_counts_, .complete = found.complete};
    for (const auto& row : found.rows)
      outcome.rows.push_back({.faults = faults_text(row.faults),
                              .schedules = row.schedules,
                              .stopped = row.stopped,
                              .steps = row.steps});
    if (!found.failing) return outcome;
    const explore::Schedule small = explore::shrink_schedule(program_, options_, *found.failing);
    outcome.schedule = to_string(small);
    outcome.failure = explore::run_schedule(program_, options_, small).failure;
    return outcome;
  }

  RunOutcome run_one() {
    const explore::Schedule schedule =
        explore::parse_schedule(settings_.schedule, program_.names().size());
    RunFiles files(settings_);
    options_.event_lines = files.trace();
    options_.history = files.history();
    observe::Spans spans;
    if (!settings_.spans_file.empty()) options_.traces.push_back(&spans);
    const sim::RunReport report = explore::run_schedule(program_, options_, schedule);
    RunOutcome outcome{.ok = report.ok};
    files.close(outcome);
    outcome.fingerprint = report.fingerprint;
    outcome.virtual_seconds = report.virtual_seconds();
    outcome.calls = static_cast<int64_t>(report.calls);
    outcome.messages = static_cast<int64_t>(report.messages);
    outcome.results = reporter_.results;
    outcome.failure = report.failure;
    if (!settings_.spans_file.empty())
      write_spans_file(settings_.spans_file, observe::file_of(spans, program_.names()), outcome);
    return outcome;
  }

 private:
  // Of the run before.
  void count_coverage() {
    for (const uint32_t pair : coverage_.seen()) ++coverage_counts_[pair];
    coverage_ = {};
  }

  // Of all its runs: a false suspicion is what a long partition makes.
  ScenarioFaults worst_plan() const {
    return {.faults = sim::FaultLevel::none,
            .crashes = static_cast<int>(options_.faults_max),
            .long_partitions = options_.faults_max > 0};
  }

  std::optional<sim::RunFailure> judge(const explore::Schedule& schedule) const {
    ScenarioFaults plan{.faults = sim::FaultLevel::none};
    for (const explore::Transition& fault : schedule.faults)
      if (fault.kind != explore::Transition::Kind::cut) ++plan.crashes;
    const auto wrong = run_user_code(settings_.scenario->name, "verdict", [&] {
      return settings_.scenario->verdict(reporter_.results, plan);
    });
    if (wrong.ok() && !wrong.value()) return std::nullopt;
    return sim::RunFailure{"result", settings_.scenario->name,
                           wrong.ok() ? *wrong.value() : "its verdict threw " + wrong.error().text};
  }

  static std::string faults_text(const std::vector<explore::Transition>& faults) {
    std::string text;
    for (const explore::Transition& fault : faults)
      text += (text.empty() ? "" : " ") + to_string(fault);
    return text;
  }

  const RunSettings& settings_;
  Reporter reporter_;
  const Program program_;
  sim::Coverage coverage_;
  CoverageCounts coverage_counts_;
  explore::ExploreOptions options_;
};

}  // namespace

ExploreOutcome explore_all(const RunSettings& settings,
                           const std::function<bool(const ExploreProgress&)>& go_on) {
  return Exploring(settings).run(go_on);
}

RunOutcome run_one_schedule(const RunSettings& settings) { return Exploring(settings).run_one(); }

void check_faults(const RunSettings& settings) {
  for (const std::string& faults : settings.only_faults)
    static_cast<void>(explore::parse_faults(faults, worker_names(settings).size()));
}

void check_schedule(const RunSettings& settings) {
  static_cast<void>(explore::parse_schedule(settings.schedule, worker_names(settings).size()));
}

}  // namespace rehearsal::command_line
