#include "scenarios/shared_state/shared_state.h"

#include <mutex>
#include <stdexcept>

#include "command_line/wrong_use.h"
#include "scenarios/shared_state/model.h"
#include "scenarios/shared_state/store.h"

namespace rehearsal::shared_state {
namespace {

constexpr int64_t kNumbers = 100'000;  // a producer's own

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("put", &put).function("finish", &finish).function("take", &take);
  registry.function("see_batch", &see_batch).function("see_taken", &see_taken);
  registry.function("score", &score);
  return registry;
}

Sizes sizes_of(const Options& options) {
  const Sizes sizes{.room = options.integer("room"),
                    .batch = options.integer("batch"),
                    .producers = options.integer("producers"),
                    .trainers = options.integer("trainers"),
                    .patience = std::chrono::milliseconds(options.integer("patience")),
                    .plant = static_cast<Plant>(options.integer("plant"))};
  if (sizes.room < sizes.batch) throw WrongUse("--set room=N: a batch has to fit into the store");
  return sizes;
}

// An impatient call gives a value, or is given up.
void check_given_up(const Error& error) {
  if (error.kind != ErrorKind::timeout) throw RpcError(error);
}

// Two that wait for more than will come: they are given up for sure.
void watch_in_vain(Worker& worker, const Sizes& sizes, int64_t items) {
  const Calls impatient = worker.with_timeout(sizes.patience);
  const auto waits = impatient.rpc_async("store", &see_taken, items, int64_t{0});
  const auto looks =
      impatient.rpc_async("store", &see_taken, items, int64_t{sizes.patience.count()});
  for (const Future<bool>& future : {waits, looks}) {
    const Result<bool> taken = future.result();
    if (taken.ok()) throw std::logic_error("more items were taken than there are");
    check_given_up(taken.error());
  }
}

// Items are scored by a trainer, which may be learning, and put as soon as there is room. With each
// somebody watches for a batch.
void produce(Worker& worker, const Sizes& sizes, int64_t items) {
  const auto rank = static_cast<int64_t>(worker.id().value);
  std::vector<Future<Unit>> puts;
  std::vector<Future<Unit>> watchers;
  for (int64_t i = 0; i < items; ++i) {
    const int64_t number = kNumbers * rank + i;
    int64_t item = number;
    if (sizes.plant != Plant::deadlock)
      item = worker.rpc_sync(trainer_of(number, sizes.trainers), &score, number);
    puts.push_back(worker.rpc_async("store", &put, number, item));
    watchers.push_back(worker.with_timeout(sizes.patience).rpc_async("store", &see_batch));
  }
  for (const Future<Unit>& watcher : watchers)
    if (const Result<Unit> seen = watcher.result(); !seen.ok()) check_given_up(seen.error());
  watch_in_vain(worker, sizes, sizes.producers * items + 1);
  for (const Future<Unit>& put : puts) put.wait();
  worker.rpc_sync("store", &finish);
}

// At the end: the store and those who take from it.
std::vector<std::string> who_meets(const Sizes& sizes) {
  std::vector<std::string> names = {"store"};
  for (int64_t i = 0; i < sizes.trainers; ++i) names.push_back(trainer_of(i, sizes.trainers));
  return names;
}

Program program(const ScenarioRun& run) {
  const Sizes sizes = sizes_of(run.options);
  const int64_t items = run.options.integer("items");
  Program program(functions());
  program
      .worker("store",
              [&reporter = run.reporter, meet = who_meets(sizes)](Worker& worker) {
                worker.barrier(meet, std::chrono::minutes(5));
                Store& store = worker.state<Store>();
                const std::lock_guard lock(store.mutex);
                reporter.results.number("items", static_cast<double>(store.taken));
                reporter.results.number("sum", static_cast<double>(store.sum));
              })
      .state<Store>(sizes);
  program
      .worker(
          "trainer",
          [plant = sizes.plant, meet = who_meets(sizes)](Worker& worker) {
            train(worker, plant);
            worker.barrier(meet);
          },
          Count{static_cast<uint32_t>(sizes.trainers)})
      .state<Model>();
  program.worker(
      "producer", [sizes, items](Worker& worker) { produce(worker, sizes, items); },
      Count{static_cast<uint32_t>(sizes.producers)});
  return program;
}

}  // namespace

Scenario scenario() {
  Scenario scenario;
  scenario.name = "shared_state";
  scenario.summary = "a bounded queue: mutexes and conditions that the functions of a worker share";
  scenario.options.integer("items", {20, 4, 1, kNumbers, "that each producer puts", 1, 6})
      .integer("producers", {3, 2, 1, 64, "workers that put items", 1, 3})
      .integer("trainers", {2, 2, 1, 64, "workers that take them, in batches", 1, 3})
      .integer("room", {4, 2, 1, 100'000, "items that the store holds", 2, 4})
      .integer("batch", {3, 2, 1, 100'000, "items that a trainer takes at once", 1, 2})
      .integer("patience",
               {5, 1, 1, 10'000, "milliseconds until who watches the store gives up", 1, 5})
      .integer("plant", {0, 0, 0, 3,
                         "a mistake: a wake-up that is lost (1), a wait that does not look again "
                         "(2), a deadlock over the calls of two workers (3)"});
  scenario.program = program;
  scenario.schedule_independent = true;
  return scenario;
}

}  // namespace rehearsal::shared_state
