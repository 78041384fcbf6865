#include "sim/hunt/trial_runs.h"

#include <algorithm>
#include <utility>

#include "sim/hunt/crash_report.h"

namespace rehearsal::sim {
namespace {

constexpr uint64_t kStepsMin = 16;  // a shorter run says nothing about others

}  // namespace

std::optional<RunFailure> TrialRuns::attempt(const ChosenRun& run, const Watch& watch) {
  ClusterOptions options = run.applied_to(task_.options.cluster);
  options.record_choices = true;
  options.event_lines = watch.event_lines;
  options.history = watch.history;
  if (watch.trace != nullptr) options.traces.push_back(watch.trace);
  std::optional<RunFailure> failure = attempt_with(run, std::move(options));
  if (report_.widths.size() >= kStepsMin)
    steps_max_ = std::max<uint64_t>(steps_max_, report_.widths.size());
  return failure;
}

std::optional<RunFailure> TrialRuns::attempt_with(const ChosenRun& run, ClusterOptions options) {
  options.reproduction = task_.command_of(run);
  options.report = &report_;
  report_ = {};
  gave_up_ = false;
  if (is_over_) options.give_up = [this] { return gave_up_ = gave_up_ || is_over_(); };
  const CrashReport crash_report(
      {.standard_error =
           "the process of the run ended; repeat it with:\n" + options.reproduction + "\n"});
  std::optional<RunFailure> failure = task_.trial(run.seed, options);
  if (gave_up_) return std::nullopt;
  return failure;
}

StrategySettings TrialRuns::taught(const ChosenRun& run) {
  StrategySettings strategy = run.strategy;
  const bool places = strategy.kind == StrategyKind::pct || strategy.kind == StrategyKind::delays;
  if (places && !strategy.length && strategy.skips.empty() && steps_max_ > 0)
    strategy.length = steps_max_;
  const bool counts = strategy.kind == StrategyKind::urw || strategy.kind == StrategyKind::surw;
  if (!counts || !strategy.counts.empty()) return strategy;
  ChosenRun in_order = run;
  in_order.strategy = StrategyKind::timed_swarm;
  ClusterOptions options = in_order.applied_to(task_.options.cluster);
  options.profile = true;
  options.oracles = false;
  // Whether it fails is a matter of the run with the strategy, or of another seed.
  static_cast<void>(attempt_with(in_order, std::move(options)));
  strategy.counts = std::move(report_.counts);
  return strategy;
}

}  // namespace rehearsal::sim
