#include "scenarios/random_training/random_training.h"

#include <memory>

#include "scenarios/random_training/head_replica.h"
#include "scenarios/random_training/trainer.h"
#include "scenarios/storm/drawn_faults.h"

namespace rehearsal::random_training {
namespace {

Program program(const ScenarioRun& run) {
  const auto size = [&options = run.options](const char* name) {
    return static_cast<size_t>(options.integer(name));
  };
  const auto plan = std::make_shared<const Plan>(draw_plan(run.seed, {.trainers = size("trainers"),
                                                                      .owners = size("owners"),
                                                                      .layers = size("layers"),
                                                                      .steps = size("steps")}));
  FunctionRegistry registry;
  register_layers(registry);
  registry.function("head_pass", &head_pass);
  Program program(std::move(registry));
  program
      .worker(
          "trainer",
          [plan, &reporter = run.reporter](Worker& worker) { train(worker, *plan, reporter); },
          Count{static_cast<uint32_t>(plan->trainers)})
      .state<HeadDesk>();
  program.worker("owner", Count{static_cast<uint32_t>(plan->owners)});
  return program;
}

ScenarioFaults draw_faults(const Options&, Seed seed) { return storm::draw_faults(seed, 20, 60); }

}  // namespace

Scenario scenario() {
  Scenario scenario;
  scenario.name = "random_training";
  scenario.summary = "a training drawn from the seed, every bit of which is that of one process";
  scenario.options
      .integer("trainers", {.full = 2,
                            .tiny = 1,
                            .min = 1,
                            .max = 3,
                            .meaning = "workers with a replica of the head",
                            .drawn_min = 1,
                            .drawn_max = 3})
      .integer("owners", {.full = 3,
                          .tiny = 2,
                          .min = 1,
                          .max = 20,
                          .meaning = "workers that the layers are at",
                          .drawn_min = 1,
                          .drawn_max = 3})
      .integer("layers", {.full = 4,
                          .tiny = 2,
                          .min = 1,
                          .max = 50,
                          .meaning = "of the model, one behind the other",
                          .drawn_min = 1,
                          .drawn_max = 4})
      .integer("steps", {.full = 6,
                         .tiny = 2,
                         .min = 1,
                         .max = 1000,
                         .meaning = "of the training",
                         .drawn_min = 1,
                         .drawn_max = 4});
  scenario.program = program;
  scenario.draw_faults = draw_faults;
  scenario.schedule_independent = true;
  return scenario;
}

}  // namespace rehearsal::random_training
