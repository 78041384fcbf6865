#include "scenarios/storm/storm.h"

#include <ATen/Functions.h>

#include "scenarios/storm/actor.h"

namespace rehearsal {
namespace {

Program storm_program(const ScenarioRun& run) {
  const int64_t operations = run.options.integer("operations");
  const auto workers = static_cast<uint32_t>(run.options.integer("workers"));
  Program program(storm::functions());
  program.worker(
      "worker",
      [operations, seed = run.seed, &reporter = run.reporter](Worker& worker) {
        storm::Actor actor(worker, seed);
        actor.act(operations);
        // A worker that was restarted says the same once more.
        if (reporter.results.tensors().contains(worker.name())) return;
        reporter.results.tensor(
            worker.name(),
            at::full({1}, static_cast<int64_t>(actor.digest() >> 1), at::TensorOptions(at::kLong)));
        reporter.results.number("lost operations of " + worker.name(),
                                static_cast<double>(actor.lost_operations()));
      },
      Count{workers});
  return program;
}

// The level of faults is part of what the seed draws.
FaultPlan draw_storm_faults(const Options&, Seed seed) {
  storm::Dice dice(seed, hash_text("faults"));
  FaultPlan plan;
  const uint64_t level = dice.draw(10);
  plan.faults = level < 1 ? Faults::none : level < 5 ? Faults::mild : Faults::hostile;
  plan.crashes = dice.happens(40) ? 1 + dice.draw(2) : 0;
  plan.long_partitions = dice.happens(40);
  plan.long_pauses = dice.happens(20);
  return plan;
}

// Operations may be lost only where a worker could be.
std::optional<std::string> judge_storm(const Results& results, const FaultPlan& plan) {
  if (plan.crashes > 0 || plan.long_partitions || plan.long_pauses) return std::nullopt;
  for (const auto& [name, number] : results.numbers())
    if (name.starts_with("lost operations") && number > 0)
      return name + ": " + std::to_string(static_cast<int64_t>(number)) +
             ", although no worker was lost";
  return std::nullopt;
}

}  // namespace

Scenario storm_scenario() {
  Scenario scenario;
  scenario.name = "storm";
  scenario.summary = "random calls, references and gradients, checked against a sequential model";
  scenario.options
      .integer(
          "operations",
          {.full = 40, .tiny = 8, .min = 1, .max = 100'000, .meaning = "operations of each worker"})
      .integer("workers",
               {.full = 4, .tiny = 3, .min = 1, .max = 64, .meaning = "workers of the group"});
  scenario.program = storm_program;
  scenario.draw_faults = draw_storm_faults;
  scenario.verdict = judge_storm;
  return scenario;
}

}  // namespace rehearsal
