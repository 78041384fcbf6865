#include "scenarios/parameter_server/parameter_server.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "scenarios/devices.h"
#include "scenarios/parameter_server/trainer.h"
#include "scenarios/storm/drawn_faults.h"

namespace rehearsal::parameter_server {
namespace {

constexpr int64_t kCheckpoints = 5;
constexpr uint64_t kTestDigits = 0;  // a trainer's own have its rank

struct Settings {
  TrainingSettings training;
  int64_t trainers = 1;
  int64_t batches = 1;
  int64_t test = 1;
  Seed seed;
};

Digits digits_of(const Settings& settings, uint64_t whose, int64_t count) {
  return draw_digits(mix(settings.seed.value, whose), count);
}

std::string batch_line(const Worker& worker, int64_t done, const Settings& settings, double loss) {
  char text[128];
  std::snprintf(text, sizeof text, "%s  batch %4lld/%lld  loss %6.4f", worker.name().c_str(),
                static_cast<long long>(done), static_cast<long long>(settings.batches), loss);
  return text;
}

// The losses of all batches. Of each fifth, or so, of them the mean is told.
std::vector<double> train(Trainer& trainer, const Worker& worker, const Settings& settings,
                          const Reporter& reporter) {
  const Digits digits =
      digits_of(settings, worker.id().value, settings.batches * settings.training.batch);
  const int64_t interval = std::max<int64_t>(1, settings.batches / kCheckpoints);
  std::vector<double> losses;
  double sum = 0;
  for (int64_t i = 0; i < settings.batches; ++i) {
    losses.push_back(
        trainer.train(part_of(digits, i * settings.training.batch, settings.training.batch)));
    sum += losses.back();
    worker.note("loss", losses.back());
    reporter.progress(batch_line(worker, i + 1, settings, losses.back()));
    if ((i + 1) % interval != 0) continue;
    const double loss = std::exchange(sum, 0) / static_cast<double>(interval);
    reporter.line(batch_line(worker, i + 1, settings, loss));
  }
  return losses;
}

std::vector<Share> shares_of_all(const Worker& worker, const Trainer& trainer,
                                 const Settings& settings) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < settings.trainers; ++i) names.push_back("trainer" + std::to_string(i));
  const Share own{to_string(*trainer.server().name()), trainer.steps(), trainer.taken()};
  const auto shares = worker.all_gather(own, names);
  std::vector<Share> in_order;
  for (const auto& [name, share] : shares) in_order.push_back(share);
  return in_order;
}

// These hold in every schedule, whatever the number of trainers.
void report_counts(const std::vector<Share>& shares, const Trainer& trainer, Results& results) {
  std::set<std::string> servers;
  int64_t steps = 0;
  for (const Share& share : shares) {
    servers.insert(share.server);
    steps += share.steps;
  }
  results.number("servers", static_cast<double>(servers.size()));
  results.number("steps", static_cast<double>(steps));
  const auto changes = trainer.server().rpc_sync(&Server::changes);
  results.number("every step counts once", explains(shares, changes) ? 1 : 0);
}

// Trainers that do not wait for each other decide by their order what each other sees: this is told
// of one alone.
void report_model(const std::vector<double>& losses, double accuracy, const Trainer& trainer,
                  Results& results) {
  results.tensor("losses", torch::tensor(losses, torch::kDouble));
  results.number("accuracy", accuracy);
  const auto names = trainer.server().rpc_sync(&Server::parameter_names);
  const auto values = trainer.server().rpc_sync(&Server::values);
  for (size_t i = 0; i < values.size(); ++i) results.tensor(names.at(i), values[i]);
}

void trainer_main(Worker& worker, const Settings& settings, Reporter& reporter) {
  Trainer trainer(worker, settings.training);
  const std::vector<double> losses = train(trainer, worker, settings, reporter);
  const std::vector<Share> shares = shares_of_all(worker, trainer, settings);
  if (worker.name() != "trainer0") return;
  const double accuracy = trainer.accuracy(digits_of(settings, kTestDigits, settings.test));
  worker.note("accuracy", accuracy);
  reporter.line("Training complete! Accuracy " + std::to_string(accuracy));
  report_counts(shares, trainer, reporter.results);
  if (settings.trainers == 1) report_model(losses, accuracy, trainer, reporter.results);
}

Program program(const ScenarioRun& run) {
  const Options& options = run.options;
  const Settings settings{.training = {.sizes = {.channels = options.integer("channels"),
                                                 .hidden = options.integer("hidden"),
                                                 .drops = options.text("dropout") == "on"},
                                       .batch = options.integer("batch"),
                                       .learning_rate = options.real("learning_rate")},
                          .trainers = options.integer("trainers"),
                          .batches = options.integer("batches"),
                          .test = options.integer("test"),
                          .seed = run.seed};
  FunctionRegistry registry;
  register_server(registry);
  Program program(std::move(registry));
  program.worker(kServerName, [](Worker&) {}).state<ServerSlot>();
  program.worker(
      "trainer",
      [settings, &reporter = run.reporter](Worker& worker) {
        trainer_main(worker, settings, reporter);
      },
      Count{static_cast<uint32_t>(settings.trainers)});
  map_devices(program, run.devices, {kServerName});
  return program;
}

ScenarioFaults draw_faults(const Options&, Seed seed) { return storm::draw_faults(seed, 25, 60); }

// A worker that comes back steps once more, or has another model: then the counts say nothing.
std::optional<std::string> judge(const Results& results, const ScenarioFaults& plan) {
  if (plan.crashes > 0 || plan.long_partitions || plan.long_pauses) return std::nullopt;
  if (results.numbers().at("servers") != 1) return "the trainers have several models";
  if (results.numbers().at("every step counts once") != 1)
    return "the parameters are not what the steps of all trainers make of them";
  return std::nullopt;
}

void declare_options(OptionTable& options) {
  options
      .integer("trainers", {.full = 1,
                            .tiny = 1,
                            .min = 1,
                            .max = 100,
                            .meaning = "workers that train the one model",
                            .drawn_min = 1,
                            .drawn_max = 3})
      .integer("batches", {.full = 400,
                           .tiny = 2,
                           .min = 1,
                           .max = 1'000'000,
                           .meaning = "of each trainer, in one pass",
                           .drawn_min = 1,
                           .drawn_max = 3})
      .integer("batch", {32, 4, 1, 4096, "digits in a batch"})
      .integer("test", {1000, 8, 1, 1'000'000, "digits that the accuracy is measured with"})
      .integer("channels", {16, 2, 1, 1024, "of the first convolution"})
      .integer("hidden", {64, 8, 1, 65536, "units between the two linear layers"})
      .choice("dropout", {{"on", "off"}, "as in the example, or none"})
      .real("learning_rate", {0.1, 0.2, 0, 1e6, "of SGD"});
}

}  // namespace

Scenario scenario() {
  Scenario scenario;
  scenario.name = "parameter_server";
  scenario.summary = "trainers run and step one classifier of digits, which lives at a server";
  declare_options(scenario.options);
  scenario.schedule_independent = true;
  scenario.uses_devices = true;
  scenario.draw_faults = draw_faults;
  scenario.verdict = judge;
  scenario.program = program;
  return scenario;
}

}  // namespace rehearsal::parameter_server
