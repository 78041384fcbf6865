// A training's steps beside their floors, each pair in turns within one run, over loopback: a step
// of an optimizer beside one round trip to all owners, an iteration of the language model beside
// one process and its transfers, and steps beside which a checkpoint is written. The counters that
// end in _us are medians, and `ratio` is one of medians; on a busy machine that of the least times,
// `least_ratio`, says more.
#include <benchmark/benchmark.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "core/api/autograd_context.h"
#include "core/api/distributed_checkpoint.h"
#include "core/api/distributed_optimizer.h"
#include "core/api/remote_module.h"
#include "core/api/worker.h"
#include "scenarios/rnn/trainer.h"
#include "scenarios/text/corpus.h"
#include "scenarios/text/vocabulary.h"
#include "tests/bench/loopback_nodes.h"
#include "tests/scenarios/serial_training.h"
#include "tests/temporary_folder.h"

namespace rehearsal::bench {
namespace {

using torch::nn::Linear;
using torch::nn::LinearImpl;

// The seconds that something takes, many times; and those of all processors, of which a busy
// machine changes less.
class Times {
 public:
  template <class Action>
  void measure(Action action) {
    const std::clock_t used = std::clock();
    const auto start = std::chrono::steady_clock::now();
    action();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    seconds_.push_back(time.count());
    used_.push_back(static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC);
  }
  [[nodiscard]] double last() const { return seconds_.back(); }
  [[nodiscard]] double middle() const { return median(seconds_); }
  [[nodiscard]] double least() const { return *std::min_element(seconds_.begin(), seconds_.end()); }
  [[nodiscard]] double middle_used() const { return median(used_); }

 private:
  std::vector<double> seconds_;
  std::vector<double> used_;
};

void report_us(benchmark::State& state, const std::string& name, const Times& times) {
  state.counters[name + "_us"] = 1e6 * times.middle();
}

void run(benchmark::State& state, const Program& program, const LoopbackNodes::Options& options,
         LoopbackNodes*& nodes_to_be) {
  LoopbackNodes nodes(program, options);
  nodes_to_be = &nodes;
  if (const Status end = nodes.run(); !end.ok())
    state.SkipWithError(to_string(end.error()).c_str());
}

// ---- a step ------------------------------------------------------------------------

// The arithmetic of a step at one owner, with gradients that are there: what a round trip that
// carries nothing does there.
class LocalStep {
 public:
  LocalStep(int64_t in, int64_t out)
      : layer_(in, out), optimizer_(layer_->parameters(), torch::optim::SGDOptions(1e-9)) {
    for (const at::Tensor& parameter : layer_->parameters())
      parameter.mutable_grad() = torch::ones_like(parameter);
  }
  void step() { optimizer_.step(); }

 private:
  Linear layer_;
  torch::optim::SGD optimizer_;
};

constexpr int64_t kIn = 64, kOut = 64;

void step_beside_trip(benchmark::State& state, Worker& worker, LoopbackNodes& nodes) {
  std::vector<RemoteModule<Linear>> layers;
  std::vector<RRef<LocalStep>> locals;
  std::vector<RRef<at::Tensor>> parameters;
  for (int64_t i = 0; i < state.range(0); ++i) {
    const std::string owner = "owner" + std::to_string(i);
    layers.emplace_back(worker, owner, kIn, kOut);
    locals.push_back(worker.remote<LocalStep>(owner, kIn, kOut));
    for (const RRef<at::Tensor>& parameter : layers.back().remote_parameters())
      parameters.push_back(parameter);
  }
  const DistributedOptimizer optimizer(worker, parameters, torch::optim::SGDOptions(1e-9));
  const AutogradContext context = worker.autograd_context();
  {
    const auto recording = context.record();
    at::Tensor loss = torch::zeros({});
    for (const auto& layer : layers) loss = loss + layer.forward(torch::ones({4, kIn})).sum();
    context.backward({loss});
  }
  const auto trip = [&] {
    std::vector<Future<Unit>> calls;
    for (const RRef<LocalStep>& local : locals) calls.push_back(local.rpc_async(&LocalStep::step));
    for (const Future<Unit>& call : calls) (void)call.wait();
  };
  for (int i = 0; i < 50; ++i) {
    optimizer.step(context);
    trip();
  }
  Times steps;
  Times trips;
  NodeCounts of_steps;
  NodeCounts of_trips;
  for (auto _ : state) {
    const NodeCounts first(nodes.node(0));
    steps.measure([&] { optimizer.step(context); });
    const NodeCounts second(nodes.node(0));
    trips.measure(trip);
    of_steps.add(second.since(first));
    of_trips.add(NodeCounts(nodes.node(0)).since(second));
    state.SetIterationTime(steps.last());
  }
  report_us(state, "step", steps);
  report_us(state, "trip", trips);
  state.counters["ratio"] = steps.middle() / trips.middle();
  state.counters["least_ratio"] = steps.least() / trips.least();
  of_steps.report(state, "step_");
  of_trips.report(state, "trip_");
}

void StepBesideRoundTrip(benchmark::State& state) {
  FunctionRegistry registry;
  register_module<Linear, int64_t, int64_t>(registry, "Linear");
  registry.type<LocalStep>("LocalStep")
      .constructor<int64_t, int64_t>()
      .method("step", &LocalStep::step);
  Program program(std::move(registry));
  LoopbackNodes* nodes = nullptr;
  program.worker("trainer", [&](Worker& worker) { step_beside_trip(state, worker, *nodes); });
  program.worker("owner", Count{static_cast<uint32_t>(state.range(0))});
  run(state, program, {}, nodes);
}
BENCHMARK(StepBesideRoundTrip)
    ->Arg(1)
    ->Arg(2)
    ->Arg(4)
    ->Iterations(2'000)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

// ---- an iteration of the language model ----------------------------------------------

struct LanguageTraining {
  rnn::TextIds text;
  rnn::TrainingSettings settings;
};

// As the scenario `rnn` has it.
LanguageTraining language_training(int64_t batches) {
  const text::Corpus corpus = text::read_corpus(text::kDefaultTextFile);
  const text::Vocabulary words(corpus.training, 2);
  return {.text = {words.ids(corpus.training), words.ids(corpus.validation)},
          .settings = {
              .sizes =
                  {.words = words.size(), .width = 128, .hidden = 128, .layers = 1, .dropout = 0.5},
              .columns = 8,
              .steps = 20,
              .batches_max = batches,
              .learning_rate = 10,
              .clip_norm = 0.25}};
}

// The tensors that an iteration sends: what of a call goes there, and what comes back.
class Transfers {
 public:
  explicit Transfers(const rnn::TrainingSettings& settings)
      : ids(torch::zeros({settings.steps, settings.columns}, torch::kLong)),
        embedded(torch::ones({settings.steps, settings.columns, settings.sizes.width})),
        scores(torch::ones({settings.steps, settings.columns, settings.sizes.words})) {}

  at::Tensor ids;
  at::Tensor embedded;
  at::Tensor scores;
};

at::Tensor ones_of(const at::Tensor&, const std::vector<int64_t>& sizes) {
  return torch::ones(sizes);
}
void take(const at::Tensor&) {}

// One behind the other, as they follow from each other: words to embeddings, outputs to scores, and
// the gradients of these.
void transfer(const Worker& worker, const Transfers& given) {
  const std::vector<int64_t> embedded = given.embedded.sizes().vec();
  benchmark::DoNotOptimize(worker.rpc_sync("ps", &ones_of, given.ids, embedded));
  benchmark::DoNotOptimize(
      worker.rpc_sync("ps", &ones_of, given.embedded, given.scores.sizes().vec()));
  benchmark::DoNotOptimize(worker.rpc_sync("ps", &ones_of, given.scores, embedded));
  worker.rpc_sync("ps", &take, given.embedded);
}

void iteration_beside_process(benchmark::State& state, Worker& worker, LoopbackNodes& nodes) {
  const auto batches_max = static_cast<size_t>(state.range(0));
  const LanguageTraining training = language_training(state.range(0));
  rnn::Trainer trainer(worker, training.settings, training.text);
  serial::LanguageModel alone(training.settings.sizes);
  auto batches = text::make_batches(
      text::lay_out(training.text.training, training.settings.columns), training.settings.steps);
  batches.resize(std::min(batches.size(), batches_max));
  const Transfers given(training.settings);
  const auto iterations = static_cast<double>(batches.size());
  Times together;
  Times serial;
  Times transfers;
  NodeCounts counts;
  for (auto _ : state) {
    const NodeCounts before(nodes.node(0));
    together.measure([&] { (void)trainer.train_epoch([](int64_t, int64_t) {}); });
    counts.add(NodeCounts(nodes.node(0)).since(before));
    serial.measure([&] { (void)serial::train_epoch(alone, batches, {}); });
    for (size_t i = 0; i < batches.size(); ++i) transfers.measure([&] { transfer(worker, given); });
    state.SetIterationTime(together.last() / iterations);
  }
  state.counters["iteration_us"] = 1e6 * together.middle() / iterations;
  state.counters["process_us"] = 1e6 * serial.middle() / iterations;
  report_us(state, "transfers", transfers);
  state.counters["ratio"] = together.middle() / (serial.middle() + iterations * transfers.middle());
  state.counters["least_ratio"] =
      together.least() / (serial.least() + iterations * transfers.least());
  counts.report(state, "", iterations);
}

void RnnBesideOneProcess(benchmark::State& state) {
  FunctionRegistry registry;
  rnn::register_served_model(registry);
  rnn::register_text_share(registry);
  registry.function("ones_of", &ones_of).function("take", &take);
  Program program(std::move(registry));
  LoopbackNodes* nodes = nullptr;
  program.worker("trainer",
                 [&](Worker& worker) { iteration_beside_process(state, worker, *nodes); });
  program.worker("ps");
  run(state, program, {}, nodes);
}
BENCHMARK(RnnBesideOneProcess)
    ->Arg(10)
    ->Iterations(51)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// ---- steps beside which a checkpoint is written --------------------------------------

constexpr int64_t kWide = 1024;
constexpr int64_t kStepsOfASave = 10;

void steps_beside_save(benchmark::State& state, Worker& worker) {
  const RemoteModule<Linear> first(worker, "owner0", kWide, kWide);
  const RemoteModule<Linear> second(worker, "owner1", kWide, kWide);
  std::vector<RRef<at::Tensor>> parameters = first.remote_parameters();
  for (const RRef<at::Tensor>& parameter : second.remote_parameters())
    parameters.push_back(parameter);
  DistributedOptimizer optimizer(worker, parameters, torch::optim::AdamOptions(1e-3));
  DistributedCheckpoint checkpoint(worker, "bench");
  checkpoint.module("first", first).module("second", second).optimizer("adam", optimizer);
  int64_t step = checkpoint.resume();
  const at::Tensor input = torch::ones({256, kWide});
  const auto steps = [&] {
    for (int64_t i = 0; i < kStepsOfASave; ++i, ++step) {
      const AutogradContext context = worker.autograd_context();
      const auto recording = context.record();
      context.backward({second.forward(torch::tanh(first.forward(input))).pow(2).mean()});
      optimizer.step(context);
    }
  };
  steps();
  checkpoint.save(step);
  checkpoint.wait();
  Times plain;
  Times saving;
  Times saves;
  Times waits;
  Times all;
  for (auto _ : state) {
    plain.measure(steps);
    all.measure([&] {
      saving.measure([&] {
        saves.measure([&] { checkpoint.save(step); });
        steps();
      });
      waits.measure([&] { checkpoint.wait(); });
    });
    state.SetIterationTime(saving.last());
  }
  state.counters["step_us"] = 1e6 * plain.middle() / kStepsOfASave;
  report_us(state, "save", saves);
  report_us(state, "wait", waits);
  state.counters["ratio"] = saving.middle() / plain.middle();
  state.counters["least_ratio"] = saving.least() / plain.least();
  state.counters["used_ratio"] = all.middle_used() / plain.middle_used();
}

// Of 24 MB, at each tenth step.
void StepsBesideSave(benchmark::State& state) {
  const TemporaryFolder folder;
  FunctionRegistry registry;
  register_module<Linear, int64_t, int64_t>(registry, "Linear");
  Program program(std::move(registry));
  LoopbackNodes* nodes = nullptr;
  program.worker("trainer", [&](Worker& worker) { steps_beside_save(state, worker); });
  program.worker("owner", Count{2});
  run(state, program, {.worker_threads = 1, .checkpoints = folder.path().string()}, nodes);
}
BENCHMARK(StepsBesideSave)->Iterations(21)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearsal::bench
