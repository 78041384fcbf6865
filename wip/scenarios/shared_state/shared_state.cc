#include "scenarios/shared_state/shared_state.h"

#include "scenarios/shared_state/model.h"
#include "scenarios/shared_state/store.h"

namespace rehearsal::shared_state {
namespace {

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("put", &put).function("finish", &finish).function("take", &take);
  registry.function("score", &score);
  return registry;
}

Sizes sizes_of(const Options& options) {
  const Sizes sizes{.room = options.integer("room"),
                    .batch = options.integer("batch"),
                    .producers = options.integer("producers"),
                    .trainers = options.integer("trainers"),
                    .plant = static_cast<Plant>(options.integer("plant"))};
  if (sizes.room < sizes.batch) throw WrongUse("--set room=N: a batch has to fit into the store");
  return sizes;
}

// Scored by a trainer, which may be learning, and put as soon as there is room.
void produce(Worker& worker, const Sizes& sizes, int64_t items) {
  const auto rank = static_cast<int64_t>(worker.id().value);
  std::vector<Future<Unit>> on_their_way;
  for (int64_t i = 0; i < items; ++i) {
    int64_t item = 100 * rank + i;
    if (sizes.plant != Plant::deadlock)
      item = worker.rpc_sync(trainer_of(item, sizes.trainers), &score, item);
    on_their_way.push_back(worker.rpc_async("store", &put, item));
  }
  for (const Future<Unit>& put : on_their_way) put.wait();
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
                worker.barrier(meet);
                const Store& store = worker.state<Store>();
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
  scenario.options.integer("items", {20, 4, 1, 100'000, "that each producer puts"})
      .integer("producers", {3, 2, 1, 64, "workers that put items"})
      .integer("trainers", {2, 2, 1, 64, "workers that take them, in batches"})
      .integer("room", {4, 3, 1, 100'000, "items that the store holds"})
      .integer("batch", {3, 2, 1, 100'000, "items that a trainer takes at once"})
      .integer("plant", {0, 0, 0, 3,
                         "a mistake: a wake-up that is lost (1), a wait that does not look again "
                         "(2), a deadlock over the calls of two workers (3)"});
  scenario.program = program;
  scenario.schedule_independent = true;
  return scenario;
}

}  // namespace rehearsal::shared_state
