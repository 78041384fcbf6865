#include "scenarios/command_line/backends.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <fstream>

#include "core/rpc/mutants.h"
#include "scenarios/command_line/real_backend.h"
#include "scenarios/wrong_use.h"
#include "sim/cluster.h"

namespace rehearsal::command_line {
namespace {

sim::FaultLevel level_of(Faults faults) {
  switch (faults) {
    case Faults::none:
      return sim::FaultLevel::none;
    case Faults::mild:
      return sim::FaultLevel::mild;
    case Faults::hostile:
      return sim::FaultLevel::hostile;
  }
  return sim::FaultLevel::mild;
}

sim::ClusterOptions cluster_options(const RunSettings& settings, std::ofstream& trace) {
  const FaultPlan plan = settings.fault_plan();
  sim::ClusterOptions options;
  options.faults = level_of(plan.faults);
  options.crashes = static_cast<uint32_t>(plan.crashes);
  options.long_partitions = plan.long_partitions;
  options.adjust_node = [&settings](NodeOptions& node) { node.mutants = settings.mutants; };
  if (!settings.trace_file.empty()) {
    trace.open(settings.trace_file);
    if (!trace) {
      throw WrongUse("--trace " + settings.trace_file + ": cannot be written; name another file");
    }
    options.event_lines = &trace;
  }
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
  outcome.calls = static_cast<int64_t>(report.calls);
  outcome.messages = static_cast<int64_t>(report.messages);
  outcome.results = std::move(results);
  if (report.failure) {
    outcome.failure =
        Failure{report.failure->oracle, report.failure->object, report.failure->message};
  }
  return outcome;
}

// What the scenario itself says of a run that ended well.
void judge_results(const RunSettings& settings, RunOutcome& outcome) {
  if (!outcome.ok || !settings.scenario->verdict) return;
  const auto wrong = settings.scenario->verdict(outcome.results, settings.fault_plan());
  if (!wrong) return;
  outcome.ok = false;
  outcome.failure = Failure{"result", settings.scenario->name, *wrong};
}

RunOutcome simulate(const RunSettings& settings, Reporter& reporter) {
  std::ofstream trace;
  sim::ClusterOptions options = cluster_options(settings, trace);
  const Program program = settings.scenario->program({settings.options, settings.seed, reporter});
  if (settings.crash_at) {
    options.crash_points.push_back(
        {worker_id(program, settings.crash_at->worker), settings.crash_at->decision});
  }
  sim::Cluster cluster(settings.seed, program, options);
  const sim::RunReport& report = cluster.try_run();
  RunOutcome outcome = outcome_of(report, reporter.results);
  judge_results(settings, outcome);
  return outcome;
}

}  // namespace

Backends shipped_backends() {
  return {.simulate = simulate,
          .serve = serve_real_worker,
          .strategies = {"timed-swarm"},
          .mutants = mutant_names()};
}

}  // namespace rehearsal::command_line
