#include "scenarios/ddp_rpc/ddp_rpc.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "core/api/worker.h"
#include "scenarios/ddp_rpc/hybrid.h"
#include "scenarios/ddp_rpc/trainer.h"
#include "scenarios/devices.h"
#include "scenarios/storm/drawn_faults.h"

namespace rehearsal::ddp_rpc {
namespace {

std::vector<Report> run_trainers(const Worker& worker, const RemoteModule<Table>& table,
                                 const Settings& settings) {
  const Calls unlimited = worker.with_timeout(Timeout::never());
  std::vector<Future<Report>> running;
  for (int64_t number = 0; number < settings.trainers; ++number)
    running.push_back(
        unlimited.rpc_async(trainer_name(number), &run_trainer, table, settings, number));
  return worker.when_all(IfOneFails::cancel_rest, running).wait();
}

// Throws std::logic_error unless each trainer had the losses and the dense part of one process at
// every step, and the table has its rows: those that nobody looked up are the first ones.
void compare(const std::vector<Report>& reports, const at::Tensor& rows, const at::Tensor& first,
             const TrainedAlone& alone) {
  for (size_t i = 0; i < reports.size(); ++i) {
    const std::string name = trainer_name(static_cast<int64_t>(i));
    if (reports[i].dense != alone.dense)
      throw std::logic_error(name + " has another dense part than one process");
    if (reports[i].losses != alone.losses[i])
      throw std::logic_error(name + " has other losses than one process");
  }
  if (digest_of(std::vector{rows}) != digest_of(std::vector{alone.rows}))
    throw std::logic_error("the table has other rows than that of one process");
  const at::Tensor untouched = alone.used.logical_not().nonzero().flatten();
  if (!rows.index_select(0, untouched).equal(first.index_select(0, untouched)))
    throw std::logic_error("a row has changed that nobody looked up");
}

void master_main(Worker& worker, const Settings& settings, Reporter& reporter) {
  const RemoteModule<Table> table(worker, place_on("ps", 1, worker.device_count()),
                                  table_seed(settings));
  const at::Tensor first = table.rpc_sync(&Table::rows);
  const std::vector<Report> reports = run_trainers(worker, table, settings);
  const at::Tensor rows = table.rpc_sync(&Table::rows);
  if (rounds_as_cpu(worker)) compare(reports, rows, first, train_alone(settings));
  reporter.line(std::to_string(reports.front().losses.size()) + " steps of " +
                std::to_string(settings.trainers) + " trainers; dense part " +
                reports.front().dense.back() + ", first loss " +
                std::to_string(reports.front().losses.front()) + ", last loss " +
                std::to_string(reports.front().losses.back()));
  for (size_t i = 0; i < reports.size(); ++i)
    reporter.results.number("last loss of " + trainer_name(static_cast<int64_t>(i)),
                            reports[i].losses.back());
  reporter.results.tensor("rows", rows);
}

Program program(const ScenarioRun& run) {
  const Options& options = run.options;
  const Settings settings{.trainers = options.integer("trainers"),
                          .epochs = options.integer("epochs"),
                          .batches = options.integer("batches"),
                          .seed = run.seed.value >> 1};
  FunctionRegistry registry;
  register_table(registry);
  register_trainer(registry);
  Program program(std::move(registry));
  program.worker("trainer", Count{static_cast<uint32_t>(settings.trainers)});
  program.worker("master", [settings, &reporter = run.reporter](Worker& worker) {
    master_main(worker, settings, reporter);
  });
  program.worker("ps");
  return program;
}

ScenarioFaults draw_faults(const Options&, Seed seed) { return storm::draw_faults(seed, 25, 60); }

}  // namespace

Scenario scenario() {
  Scenario scenario;
  scenario.name = "ddp_rpc";
  scenario.summary = "replicas with averaged gradients, and one table of embeddings for all";
  scenario.options
      .integer("trainers", {.full = 2,
                            .tiny = 2,
                            .min = 1,
                            .max = 100,
                            .meaning = "workers with a replica of the dense part",
                            .drawn_min = 1,
                            .drawn_max = 4})
      .integer("epochs", {.full = 100,
                          .tiny = 1,
                          .min = 1,
                          .max = 1'000'000,
                          .meaning = "of each trainer",
                          .drawn_min = 1,
                          .drawn_max = 2})
      .integer("batches", {.full = 10,
                           .tiny = 2,
                           .min = 1,
                           .max = 1'000'000,
                           .meaning = "of an epoch",
                           .drawn_min = 1,
                           .drawn_max = 4});
  scenario.schedule_independent = true;
  scenario.uses_devices = true;
  scenario.draw_faults = draw_faults;
  scenario.program = program;
  return scenario;
}

}  // namespace rehearsal::ddp_rpc
