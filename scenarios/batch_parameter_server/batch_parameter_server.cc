#include "scenarios/batch_parameter_server/batch_parameter_server.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "core/api/worker.h"
#include "scenarios/batch_parameter_server/server.h"
#include "scenarios/batch_parameter_server/trainer.h"
#include "scenarios/devices.h"
#include "scenarios/storm/drawn_faults.h"

namespace rehearsal::batch_parameter_server {
namespace {

std::string trainer_name(int64_t number) { return "trainer" + std::to_string(number); }

std::vector<Report> run_trainers(const Worker& worker, const RRef<Server>& server,
                                 const Settings& settings) {
  // Each trainer makes all of its calls meanwhile.
  const Calls unlimited = worker.with_timeout(Timeout::never());
  std::vector<Future<Report>> running;
  for (int64_t number = 0; number < settings.trainers; ++number)
    running.push_back(
        unlimited.rpc_async(trainer_name(number), &run_trainer, server, settings, number));
  return worker.when_all(IfOneFails::cancel_rest, running).wait();
}

// Throws std::logic_error unless every trainer got the model of one process in every round.
void compare(const std::vector<Report>& reports, const TrainedAlone& alone) {
  for (size_t i = 0; i < reports.size(); ++i)
    for (size_t round = 0; round < alone.models.size(); ++round)
      if (reports[i].models.at(round) != alone.models[round])
        throw std::logic_error(trainer_name(static_cast<int64_t>(i)) +
                               " got another model in round " + std::to_string(round) +
                               " than one process has");
}

void server_main(Worker& worker, const Settings& settings, Reporter& reporter) {
  const auto server = worker.remote<Server>(worker.name(), settings);
  const std::vector<Report> reports = run_trainers(worker, server, settings);
  if (rounds_as_cpu(worker)) compare(reports, train_alone(settings));
  const int64_t updates = server.with_local([](const Server& value) { return value.updates(); });
  if (updates != settings.batches)
    throw std::logic_error(std::to_string(updates) + " updates for " +
                           std::to_string(settings.batches) + " batches");
  reporter.line(std::to_string(updates) + " updates with the gradients of " +
                std::to_string(settings.trainers) + " trainers each; parameters " +
                reports.front().models.back());
  reporter.results.number("updates", static_cast<double>(updates));
  for (size_t i = 0; i < reports.size(); ++i)
    reporter.results.number("last loss of " + trainer_name(static_cast<int64_t>(i)),
                            reports[i].last_loss);
  const std::vector<at::Tensor> model =
      server.with_local([](Server& value) { return value.get_model(); });
  for (size_t i = 0; i < model.size(); ++i)
    reporter.results.tensor("parameter " + std::to_string(i), model[i]);
}

Program program(const ScenarioRun& run) {
  const Options& options = run.options;
  const Settings settings{.sizes = {.side = options.integer("side"),
                                    .channels = options.integer("channels"),
                                    .blocks = options.integer("blocks"),
                                    .classes = options.integer("classes")},
                          .trainers = options.integer("trainers"),
                          .batches = options.integer("batches"),
                          .rows = options.integer("rows"),
                          .seed = run.seed.value >> 1};
  FunctionRegistry registry;
  register_server(registry);
  register_trainer(registry);
  Program program(std::move(registry));
  program.worker("ps", [settings, &reporter = run.reporter](Worker& worker) {
    server_main(worker, settings, reporter);
  });
  program.worker("trainer", Count{static_cast<uint32_t>(settings.trainers)});
  map_devices(program, run.devices, {"ps"});
  return program;
}

ScenarioFaults draw_faults(const Options&, Seed seed) { return storm::draw_faults(seed, 25, 60); }

}  // namespace

Scenario scenario() {
  Scenario scenario;
  scenario.name = "batch_parameter_server";
  scenario.summary = "a server answers no trainer before it has stepped with the gradients of all";
  scenario.options
      .integer("trainers", {.full = 5,
                            .tiny = 3,
                            .min = 1,
                            .max = 100,
                            .meaning = "workers that wait for each other in every round",
                            .drawn_min = 1,
                            .drawn_max = 4})
      .integer("batches", {.full = 6,
                           .tiny = 2,
                           .min = 1,
                           .max = 1'000'000,
                           .meaning = "of each trainer, and so updates",
                           .drawn_min = 1,
                           .drawn_max = 4})
      .integer("rows", {20, 2, 1, 4096, "pictures in a batch"})
      .integer("side", {16, 4, 1, 1024, "pixels of a picture"})
      .integer("channels", {16, 2, 1, 1024, "of each convolution"})
      .integer("blocks", {3, 1, 0, 100, "of two convolutions, with a way around them"})
      .integer("classes", {30, 3, 1, 1000, "of pictures"});
  scenario.schedule_independent = true;
  scenario.uses_devices = true;
  scenario.draw_faults = draw_faults;
  scenario.program = program;
  return scenario;
}

}  // namespace rehearsal::batch_parameter_server
