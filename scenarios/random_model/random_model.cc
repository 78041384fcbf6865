#include "scenarios/random_model/random_model.h"

#include <ATen/Functions.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/api/worker.h"
#include "scenarios/devices.h"
#include "scenarios/random_model/leader.h"
#include "scenarios/storm/drawn_faults.h"

namespace rehearsal::random_model {
namespace {

constexpr int kAttempts = 4;

// Runs the model until it has been run once without losing anybody; notes what was lost before.
Outputs run_to_the_end(const Worker& worker, const Model& model, Reporter& reporter) {
  const Reference reference(model);
  int failures = 0;
  const auto note = [&reporter, &failures](const RpcError& error) {
    reporter.results.number("failed " + std::to_string(failures++) + ": " + error.what(), 1);
  };
  for (int attempt = 1;; ++attempt) {
    try {
      return Attempt(worker, model, reference, note).run();
    } catch (const RpcError& error) {
      if (!is_loss(error.kind()) || attempt == kAttempts) throw;
      note(error);
    }
    for (const WorkerInfo& other : worker.workers())
      worker.wait_for_worker(other.name, std::chrono::seconds(30));
  }
}

Program program(const ScenarioRun& run) {
  const Size size{.workers = static_cast<uint32_t>(run.options.integer("workers")),
                  .nodes = static_cast<size_t>(run.options.integer("nodes")),
                  .passes = static_cast<size_t>(run.options.integer("passes"))};
  Model drawn = draw_model(run.seed, size);
  drawn.sparse = run.devices == 0;
  const auto model = std::make_shared<const Model>(std::move(drawn));
  static const FunctionRegistry registry = functions();
  Program program(registry);
  program.worker("leader", [model, &reporter = run.reporter](Worker& worker) {
    if (!rounds_as_cpu(worker))
      throw std::invalid_argument(
          "random_model compares bits with the CPU's, and GPUs round otherwise: type --devices N");
    const Outputs gradients = run_to_the_end(worker, *model, reporter);
    for (size_t i = 0; i < gradients.size(); ++i)
      if (gradients[i].defined())
        reporter.results.tensor("gradient " + std::to_string(i), gradients[i].to_dense());
    reporter.results.number("gradients compared", static_cast<double>(gradients.size()));
  });
  program.state<Plan>(model);
  std::vector<std::string> all;
  for (uint32_t worker = 0; worker < size.workers; ++worker) all.push_back(worker_name(worker));
  map_devices(program, run.devices, all);
  program.worker(
      "worker", [](Worker&) {}, Count{size.workers - 1});
  program.state<Plan>(model);
  map_devices(program, run.devices, all);
  return program;
}

ScenarioFaults draw_faults(const Options&, Seed seed) { return storm::draw_faults(seed, 30, 60); }

// Nothing may have failed where no worker could be lost.
std::optional<std::string> judge(const Results& results, const ScenarioFaults& plan) {
  if (plan.crashes > 0 || plan.long_partitions || plan.long_pauses) return std::nullopt;
  for (const auto& [name, number] : results.numbers())
    if (name.starts_with("failed ")) return name + ", although no worker was lost";
  return std::nullopt;
}

}  // namespace

Scenario scenario() {
  Scenario scenario;
  scenario.name = "random_model";
  scenario.summary = "a model drawn from the seed and cut over workers, compared with one process";
  scenario.options
      .integer("workers", {.full = 5,
                           .tiny = 3,
                           .min = 2,
                           .max = 8,
                           .meaning = "workers of the group, the leader too",
                           .drawn_min = 2,
                           .drawn_max = 8})
      .integer("nodes", {.full = 16,
                         .tiny = 4,
                         .min = 0,
                         .max = 200,
                         .meaning = "nodes of the model, beside leaves and losses",
                         .drawn_min = 1,
                         .drawn_max = 12})
      .integer("passes", {.full = 3,
                          .tiny = 1,
                          .min = 1,
                          .max = 20,
                          .meaning = "backward passes, beside one over a penalty",
                          .drawn_min = 1,
                          .drawn_max = 3});
  scenario.program = program;
  scenario.draw_faults = draw_faults;
  scenario.schedule_independent = true;
  scenario.uses_devices = true;
  scenario.verdict = judge;
  return scenario;
}

}  // namespace rehearsal::random_model
