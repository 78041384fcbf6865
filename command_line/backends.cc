#include "command_line/backends.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <typeinfo>

#include "command_line/explore_backend.h"
#include "command_line/output_files.h"
#include "command_line/real_backend.h"
#include "command_line/run_stream.h"
#include "command_line/schedule_check.h"
#include "command_line/spans_file.h"
#include "command_line/wrong_use.h"
#include "core/base/mutants.h"
#include "core/base/symbols.h"
#include "sim/cluster.h"
#include "sim/decisions/decision_words.h"
#include "sim/explain/history_file.h"
#include "sim/hunt/features.h"
#include "sim/hunt/noted_throws.h"
#include "sim/world/coverage.h"
#include "sim/world/spare_stacks.h"

namespace rehearsal::command_line {
namespace {

sim::ClusterOptions cluster_options(const RunSettings& settings) {
  const ScenarioFaults plan = settings.fault_plan();
  sim::ClusterOptions options;
  options.faults = plan.faults;
  options.crashes = static_cast<uint32_t>(plan.crashes);
  options.mad = plan.mad > 0;
  options.devices = settings.device_count();
  options.restart = plan.restarts;
  options.long_partitions = plan.long_partitions;
  options.long_pauses = plan.long_pauses;
  for (const std::string& fault : settings.without)
    options.without.push_back(*sim::fault_class_named(fault));
  if (!settings.network.empty()) options.preset = net_fake::preset_named(settings.network);
  options.strict_leaks = !settings.scenario->allows_leaks;
  options.overrides = settings.decisions;
  options.otherwise = settings.benign ? sim::Otherwise::benign : sim::Otherwise::drawn;
  options.record_choices = settings.record;
  options.exception_traces = settings.exception_traces;
  if (settings.watchdog)
    options.watchdog = std::chrono::milliseconds(std::llround(*settings.watchdog * 1000));
  if (settings.virtual_time_max)
    options.virtual_time_max =
        std::chrono::milliseconds(std::llround(*settings.virtual_time_max * 1000));
  if (!settings.strategy.empty()) options.strategy = sim::parse_strategy(settings.strategy);
  for (const std::string& redraw : settings.redraws)
    options.redraws.push_back(sim::parse_redraw(redraw));
  options.adjust_node = [&settings, plan](NodeOptions& node) {
    if (settings.scenario->adjust_node) settings.scenario->adjust_node(node, plan, settings.seed);
    node.mutants = settings.mutants;
  };
  options.invariants = settings.scenario->invariants;
  return options;
}

WorkerId worker_id(const Program& program, const std::string& name) {
  const std::vector<std::string> names = program.names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw WrongUse("--crash-at " + name + ": no such worker");
  return WorkerId{static_cast<uint32_t>(found - names.begin())};
}

RunOutcome outcome_of(const sim::RunReport& report, Results results) {
  RunOutcome outcome;
  for (const sim::WorkerReport& worker : report.workers) {
    outcome.decisions[worker.name] = worker.decisions;
  }
  outcome.torch_threads = at::get_num_threads();
  outcome.ok = report.ok;
  outcome.fingerprint = report.fingerprint;
  outcome.virtual_seconds = report.virtual_seconds();
  outcome.faults = report.faults;
  outcome.steps = report.widths.size();
  outcome.draws = report.draws;
  outcome.calls = static_cast<int64_t>(report.calls);
  outcome.messages = static_cast<int64_t>(report.messages);
  outcome.stacks_left = report.stacks_left;
  outcome.choices = report.choices;
  outcome.choices.insert(outcome.choices.end(), report.deviations.begin(), report.deviations.end());
  outcome.absent = report.absent_overrides;
  outcome.leaks = report.leaks;
  outcome.results = std::move(results);
  outcome.failure = report.failure;
  return outcome;
}

// The history, which the run has written, ends where the verdict threw.
void tell_throw(const RunSettings& settings, const RunOutcome& outcome, const std::string& what,
                const std::string& stack) {
  if (settings.history_file.empty()) return;
  const std::chrono::duration<double> passed(outcome.virtual_seconds.value_or(0));
  const Instant when = Instant{} + std::chrono::duration_cast<Duration>(passed);
  std::ofstream file(settings.history_file, std::ios::app);
  sim::HistoryWriter history(file);
  history.add({.kind = sim::EntryKind::thrown,
               .when = when,
               .text = what,
               .detail = "the verdict",
               .stack = stack});
  history.add({.kind = sim::EntryKind::failed, .when = when, .text = "result"});
}

// The verdict of the scenario itself on a run that ended well. One that throws judges nothing.
// Where a worker is mad the results may be anything.
void judge_results(const RunSettings& settings, RunOutcome& outcome) {
  if (!outcome.ok || !settings.scenario->verdict) return;
  ScenarioFaults plan = settings.fault_plan();
  if (plan.mad > 0) return;
  if (settings.crash_at) ++plan.crashes;
  std::optional<std::string> wrong;
  sim::NotedThrows throws;
  try {
    wrong = settings.scenario->verdict(outcome.results, plan);
  } catch (const std::exception& thrown) {
    const std::string what = type_name(typeid(thrown)) + ": " + thrown.what();
    const Error error{.kind = ErrorKind::remote_exception, .text = what};
    throws.became(error);
    tell_throw(settings, outcome, what, throws.stack());
    wrong = "its verdict threw " + what + "\n" + throws.place_of(error);
  }
  if (!wrong) return;
  outcome.ok = false;
  outcome.failure = sim::RunFailure{"result", settings.scenario->name, *wrong};
}

// A decision that was given and never asked for: the run is not the one that was meant.
void judge_decisions(const RunSettings& settings, RunOutcome& outcome) {
  if (!outcome.ok || outcome.absent.empty()) return;
  const std::vector<std::string> workers = worker_names(settings);
  std::string message = "this decision does not come up in the run any more";
  for (size_t i = 1; i < outcome.absent.size(); ++i)
    message += (i == 1 ? "; nor do " : ", ") + sim::with_names(outcome.absent[i], workers);
  outcome.ok = false;
  outcome.failure = sim::RunFailure{"decisions", sim::with_names(outcome.absent.front(), workers),
                                    std::move(message)};
}

bool learns_counts(const sim::StrategySettings& strategy) {
  return (strategy.kind == sim::StrategyKind::urw || strategy.kind == sim::StrategyKind::surw) &&
         strategy.counts.empty();
}

// How many events each chain has if the same program, with the same faults, runs in the order of
// instants.
std::vector<sim::ChainCount> counts_of(const RunSettings& settings, sim::ClusterOptions options) {
  Reporter silent{
      .line = [](const std::string&) {}, .progress = [](const std::string&) {}, .results = {}};
  const Program program = settings.program(silent);
  options.strategy = sim::StrategyKind::timed_swarm;
  options.profile = true;
  options.oracles = false;
  options.record_choices = false;
  options.event_lines = nullptr;
  options.choice_lines = nullptr;
  options.traces.clear();
  options.coverage = nullptr;
  return sim::Cluster(settings.seed, program, std::move(options)).try_run().counts;
}

// The parts that a run is made with.
struct Equipment {
  fibers::StackPool& stacks;
  bool oracles = true;
};

RunOutcome simulate_once(const RunSettings& settings, Reporter& reporter, Equipment equipment) {
  RunFiles files(settings);
  sim::ClusterOptions options = cluster_options(settings);
  options.event_lines = files.trace();
  options.history = files.history();
  options.choice_lines = files.choices();
  options.oracles = equipment.oracles;
  options.stacks = &equipment.stacks;
  const Program program = settings.program(reporter);
  if (settings.crash_at) {
    options.crash_points.push_back(
        {worker_id(program, settings.crash_at->worker), settings.crash_at->decision});
  }
  const bool learns = learns_counts(options.strategy);
  if (learns) options.strategy.counts = counts_of(settings, options);
  sim::Features features;
  if (settings.tell_features) options.traces.push_back(&features);
  sim::Coverage coverage;
  if (settings.tell_coverage) options.coverage = &coverage;
  observe::Spans spans;
  check_output_file("--spans", settings.spans_file);
  if (!settings.spans_file.empty()) options.traces.push_back(&spans);
  // Nobody can do anything about it: the passes of the library order these streams themselves.
  if (options.devices > 0) at::globalContext().setWarnOnAccumulateGradStreamMismatch(false);
  sim::Cluster cluster(settings.seed, program, options);
  reporter.results.set_declarer([&cluster]() -> std::optional<Results::Declarer> {
    const auto life = cluster.running();
    if (!life) return std::nullopt;
    return Results::Declarer{life->worker.value, life->life};
  });
  const sim::RunReport& report = cluster.try_run();
  reporter.results.set_declarer(nullptr);
  RunOutcome outcome = outcome_of(report, reporter.results);
  files.close(outcome);
  if (!settings.spans_file.empty())
    write_spans_file(settings.spans_file, observe::file_of(spans, program.names()), outcome);
  if (learns) outcome.strategy = to_string(options.strategy);
  if (settings.tell_widths) outcome.widths = report.widths;
  if (settings.tell_features) outcome.features = features.seen();
  if (settings.tell_coverage) outcome.coverage = coverage.seen();
  return outcome;
}

RunOutcome simulate(const RunSettings& settings, Reporter& reporter, fibers::StackPool& stacks) {
  RunOutcome outcome = simulate_once(settings, reporter, {.stacks = stacks});
  judge_results(settings, outcome);
  judge_schedule(
      settings,
      [&stacks](const RunSettings& again) {
        Reporter silent{.line = [](const std::string&) {}, .progress = [](const std::string&) {}};
        return simulate_once(again, silent, {.stacks = stacks, .oracles = false});
      },
      outcome);
  judge_decisions(settings, outcome);
  return outcome;
}

template <class Kinds>
std::vector<std::string> names_of(const Kinds& kinds) {
  std::vector<std::string> names;
  for (const auto kind : kinds) names.emplace_back(name_of(kind));
  return names;
}

std::string portfolio_name(Seed seed) {
  if (sim::portfolio_guides(seed)) return std::string(kGuided);
  const sim::StrategyKind kind = sim::portfolio_strategy(seed);
  return kind == sim::StrategyKind::timed_swarm ? std::string() : std::string(name_of(kind));
}

// sim::shrink_choices of choices as text.
}  // namespace

Backends shipped_backends() {
  return {
      .simulate =
          [stacks = sim::spare_stacks()](const RunSettings& settings, Reporter& reporter) {
            return settings.schedule.empty() ? simulate(settings, reporter, *stacks)
                                             : run_one_schedule(settings);
          },
      .serve = serve_real_worker,
      .refuse = refuse_real_worker,
      .strategies = names_of(sim::kStrategyKinds),
      .portfolio = portfolio_name,
      .networks = names_of(net_fake::kPresets),
      .fault_classes = names_of(sim::kFaultClasses),
      .mutants = mutant_names(),
      .check_strategy =
          [](const std::string& text) { static_cast<void>(sim::parse_strategy(text)); },
      .check_redraw = [](const std::string& text) { static_cast<void>(sim::parse_redraw(text)); },
      .check_schedule = check_schedule,
      .check_faults = check_faults,
      .explore = explore_all};
}

}  // namespace rehearsal::command_line
