#include "command_line/schedule_check.h"

namespace rehearsal::command_line {
namespace {

constexpr uint64_t kEventsMax = 10'000;

uint64_t events_of(const RunOutcome& outcome) {
  uint64_t events = 0;
  for (const auto& [worker, count] : outcome.decisions) events += count;
  return events;
}

// The same program, as calm as it gets.
RunSettings undisturbed(const RunSettings& settings) {
  RunSettings calm;
  calm.scenario = settings.scenario;
  calm.options = settings.options;
  calm.seed = settings.seed;
  calm.devices = settings.devices;
  calm.faults = sim::FaultLevel::none;
  calm.crashes = 0;
  calm.mad = 0;
  calm.long_partitions = false;
  calm.long_pauses = false;
  calm.mutants = settings.mutants;
  calm.benign = true;
  return calm;
}

std::optional<std::string> difference(const RunOutcome& outcome, const RunOutcome& reference) {
  const Comparison expected{"the run without faults", reference.results.tensors()};
  if (const auto tensor = first_difference(expected, outcome.results)) return "tensor " + *tensor;
  for (const auto& [name, value] : reference.results.numbers()) {
    const auto ours = outcome.results.numbers().find(name);
    if (ours == outcome.results.numbers().end() || !(ours->second == value))
      return "number '" + name + "' differs from the run without faults";
  }
  return std::nullopt;
}

}  // namespace

void judge_schedule(const RunSettings& settings, const SimulateAgain& simulate,
                    RunOutcome& outcome) {
  if (!outcome.ok || !settings.scenario->schedule_independent) return;
  const ScenarioFaults plan = settings.fault_plan();
  const bool disturbed = plan.crashes > 0 || plan.mad > 0 || plan.long_partitions ||
                         plan.long_pauses || settings.crash_at;
  if (disturbed || events_of(outcome) > kEventsMax) return;
  const RunOutcome reference = simulate(undisturbed(settings));
  if (!reference.ok) return;
  const auto differs = difference(outcome, reference);
  if (!differs) return;
  outcome.ok = false;
  outcome.failure = sim::RunFailure{"schedule independence", settings.scenario->name, *differs};
}

}  // namespace rehearsal::command_line
