#include "scenarios/recovery/recovery.h"

#include <torch/optim/adam.h>

#include <algorithm>

#include "core/api/distributed_checkpoint.h"
#include "core/api/distributed_optimizer.h"
#include "core/api/recovery.h"
#include "core/api/worker.h"
#include "scenarios/devices.h"
#include "scenarios/recovery/layers.h"
#include "scenarios/storm/drawn_faults.h"

namespace rehearsal::recovery {
namespace {

using ServedLayer = ServedModule<LayerImpl>;

constexpr const char* kLeader = "trainer0";

struct Settings {
  int64_t steps = 1;
  int64_t trainers = 1;
  int64_t save_every = 1;
  Seed seed;
};

std::vector<std::string> trainers_of(const Settings& settings) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < settings.trainers; ++i) names.push_back("trainer" + std::to_string(i));
  return names;
}

// The model of all trainers, which the first of them makes in each of its lives.
struct Model {
  RemoteModule<Layer> first;
  RemoteModule<Layer> second;
};

Model model_for(const Worker& worker) {
  if (worker.name() != kLeader)
    return {RemoteModule<Layer>(worker.lookup<ServedLayer>(kLeader, "first")),
            RemoteModule<Layer>(worker.lookup<ServedLayer>(kLeader, "second"))};
  const int devices = worker.device_count();
  Model model{
      RemoteModule<Layer>(worker, place_on("owner0", 0, devices), kIn, kHidden, kFirstSeed),
      RemoteModule<Layer>(worker, place_on("owner1", 1, devices), kHidden, kOut, kSecondSeed)};
  worker.publish("first", model.first.module_rref());
  worker.publish("second", model.second.module_rref());
  return model;
}

std::vector<RRef<at::Tensor>> parameters_of(const Model& model) {
  std::vector<RRef<at::Tensor>> parameters = model.first.remote_parameters();
  for (const RRef<at::Tensor>& parameter : model.second.remote_parameters())
    parameters.push_back(parameter);
  return parameters;
}

double train_step(const Worker& worker, const Model& model, const DistributedOptimizer& optimizer,
                  const Settings& settings, int64_t position) {
  const AutogradContext context = worker.autograd_context();
  const auto recording = context.record();
  const at::Tensor batch = batch_of(settings.seed.value, position).to(device_or_cpu(worker));
  const at::Tensor loss = loss_of(model.second.forward(model.first.forward(batch)), batch);
  context.backward({loss});
  optimizer.step(context);
  return loss.item<double>();
}

bool equal_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) { return x.cpu().equal(y); });
}

void report(const Worker& worker, const Model& model, const Settings& settings, double loss,
            Results& results) {
  std::vector<at::Tensor> values = model.first.rpc_sync(&LayerImpl::values);
  for (const at::Tensor& value : model.second.rpc_sync(&LayerImpl::values)) values.push_back(value);
  for (size_t i = 0; i < values.size(); ++i) results.tensor(std::to_string(i), values[i]);
  if (rounds_as_cpu(worker)) {
    const auto alone = trained_alone(settings.seed.value, settings.steps, settings.trainers);
    results.number("bits of one process", equal_bits(values, alone) ? 1 : 0);
  }
  results.number("loss", loss);
}

void tell_lives(const Worker& worker, int64_t step, const Reporter& reporter) {
  for (const EndedLife& ended : ended_lives(worker))
    reporter.line(worker.name() + ": life " + std::to_string(ended.life) + " lost '" + ended.lost +
                  "': " + ended.why);
  if (step > 0) reporter.line(worker.name() + " goes on from step " + std::to_string(step));
}

// The trainers take turns: the data, and so the bits, follow from the step alone.
void trainer_main(Worker& worker, const Settings& settings, Reporter& reporter) {
  const std::vector<std::string> trainers = trainers_of(settings);
  const auto turn = std::find(trainers.begin(), trainers.end(), worker.name()) - trainers.begin();
  worker.barrier(trainers);  // Of these lives; if one ends later, the next meeting says so.
  const Model model = model_for(worker);
  DistributedOptimizer optimizer(worker, parameters_of(model), torch::optim::AdamOptions(0.02));
  int64_t position = 0;  // in the data
  double loss = 0;

  // A disk that is lost costs steps, and no bit.
  DistributedCheckpoint checkpoint(worker, "training", {.members = trainers, .accept_loss = true});
  if (worker.name() == kLeader)
    checkpoint.module("first", model.first).module("second", model.second);
  checkpoint.optimizer(worker.name() + "-adam", optimizer)
      .value("position", position)
      .value("loss", loss);
  int64_t step = checkpoint.resume();
  tell_lives(worker, step, reporter);
  while (step < settings.steps) {
    if (step % settings.trainers == turn)
      loss = train_step(worker, model, optimizer, settings, position);
    worker.barrier(trainers);
    ++position;
    if (++step % settings.save_every == 0) checkpoint.save(step);
    worker.note("loss", loss);
  }
  checkpoint.wait();
  if (worker.name() == kLeader) report(worker, model, settings, loss, reporter.results);
  // A trainer that ended before the result is told could not go on if the leader crashed.
  worker.barrier(trainers);
  if (worker.name() != kLeader) return;
  for (const char* layer : {"first", "second"}) worker.unpublish(layer);
}

Program program(const ScenarioRun& run) {
  const Settings settings{.steps = run.options.integer("steps"),
                          .trainers = run.options.integer("trainers"),
                          .save_every = run.options.integer("save_every"),
                          .seed = run.seed};
  FunctionRegistry registry;
  register_layers(registry);
  Program program(std::move(registry));
  program
      .worker(
          "trainer",
          [settings, &reporter = run.reporter](Worker& worker) {
            trainer_main(worker, settings, reporter);
          },
          Count{static_cast<uint32_t>(settings.trainers)})
      .recovering();
  map_devices(program, run.devices, {"owner0", "owner1"});
  program.worker("owner", Count{2}).recovering();
  return program;
}

ScenarioFaults draw_faults(const Options&, Seed seed) { return storm::draw_faults(seed, 60, 80); }

// Also of a run with crashes: whoever ends has these bits.
std::optional<std::string> judge(const Results& results, const ScenarioFaults&) {
  const auto same = results.numbers().find("bits of one process");
  if (same != results.numbers().end() && same->second != 1)
    return "the parameters are not those that one process trains";
  return std::nullopt;
}

}  // namespace

Scenario scenario() {
  Scenario scenario;
  scenario.name = "recovery";
  scenario.summary = "a training that goes on from its checkpoint, whoever crashes";
  scenario.options
      .integer("steps", {.full = 60,
                         .tiny = 6,
                         .min = 1,
                         .max = 1'000'000,
                         .meaning = "of the training",
                         .drawn_min = 2,
                         .drawn_max = 8})
      .integer("trainers", {.full = 2,
                            .tiny = 2,
                            .min = 1,
                            .max = 16,
                            .meaning = "workers that take turns",
                            .drawn_min = 1,
                            .drawn_max = 3})
      .integer("save_every", {.full = 5,
                              .tiny = 2,
                              .min = 1,
                              .max = 1'000'000,
                              .meaning = "steps between two saves",
                              .drawn_min = 1,
                              .drawn_max = 3});
  scenario.schedule_independent = true;
  scenario.uses_devices = true;
  scenario.draw_faults = draw_faults;
  scenario.verdict = judge;
  scenario.program = program;
  return scenario;
}

}  // namespace rehearsal::recovery
