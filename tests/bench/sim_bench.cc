// The simulator's own speed, beside its floors: the bare event queue and a bare frame.
#include <benchmark/benchmark.h>

#include <memory>

#include "core/api/worker.h"
#include "core/fibers/stack_pool.h"
#include "sim/cluster.h"
#include "sim/world/event_queue.h"

namespace rehearsal::sim {
namespace {

// Always has one event ahead, as a node with one timer.
class Ticker final : public net_fake::Occurrence {
 public:
  Ticker(EventQueue& queue, uint64_t number) : queue_(queue), step_(number) {}
  void schedule() {
    step_ = mix(step_);
    queue_.at(queue_.now() + Duration(static_cast<int64_t>(step_ % 1'000'000)), *this, step_);
  }
  WorkerId worker(uint64_t) const override { return WorkerId{0}; }
  bool due(uint64_t ticket) const override { return ticket == step_; }
  void happen(uint64_t) override { schedule(); }

 private:
  EventQueue& queue_;
  uint64_t step_;
};

void sim_floor_event_queue(benchmark::State& state) {
  EventQueue queue;
  std::vector<std::unique_ptr<Ticker>> tickers;
  for (int64_t i = 0; i < state.range(0); ++i) {
    tickers.push_back(std::make_unique<Ticker>(queue, static_cast<uint64_t>(i)));
    tickers.back()->schedule();
  }
  for (auto _ : state) {
    const auto next = queue.peek();
    queue.take(*next);
    next->what->happen(next->ticket);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(sim_floor_event_queue)->Arg(16)->Arg(1024);

int64_t add(int64_t one, int64_t other) { return one + other; }

constexpr int64_t kCalls = 20'000;

constexpr int64_t kSum = kCalls * (kCalls - 1) / 2;

void call_one_after_another(Worker& worker) {
  int64_t sum = 0;
  for (int64_t i = 0; i < kCalls; ++i) sum = worker.rpc_sync("server", &add, sum, i);
  if (sum != kSum) throw std::logic_error("wrong sum");
}

void keep_many_in_flight(Worker& worker) {
  constexpr int64_t kInFlight = 100;
  int64_t sum = 0;
  std::vector<Future<int64_t>> calls;
  for (int64_t i = 0; i < kCalls; i += kInFlight) {
    calls.clear();
    for (int64_t j = i; j < i + kInFlight; ++j)
      calls.push_back(worker.rpc_async("server", &add, int64_t{0}, j));
    for (const Future<int64_t>& call : calls) sum += call.wait();
  }
  if (sum != kSum) throw std::logic_error("wrong sum");
}

Program calling(StackPlacement placement, void (*client)(Worker&)) {
  FunctionRegistry registry;
  registry.function("add", &add);
  if (placement == StackPlacement::inline_) registry.runs_inline();
  Program program(std::move(registry));
  program.worker("server", [](Worker&) {});
  program.worker("client", client);
  return program;
}

void run_calls(benchmark::State& state, StackPlacement placement, bool oracles,
               void (*client)(Worker&) = &call_one_after_another) {
  const Program program = calling(placement, client);
  fibers::StackPool stacks;
  uint64_t seed = 0;
  for (auto _ : state) {
    Cluster cluster(Seed{++seed}, program,
                    {.faults = FaultLevel::none, .oracles = oracles, .stacks = &stacks});
    const RunReport& report = cluster.run();
    if (report.calls != static_cast<uint64_t>(kCalls)) state.SkipWithError("calls are missing");
  }
  state.SetItemsProcessed(state.iterations() * kCalls);
}

void sim_integer_call_on_a_fiber(benchmark::State& state) {
  run_calls(state, StackPlacement::pool, /*oracles=*/false);
}
BENCHMARK(sim_integer_call_on_a_fiber)->Unit(benchmark::kMillisecond);

void sim_integer_call_inline(benchmark::State& state) {
  run_calls(state, StackPlacement::inline_, /*oracles=*/false);
}
BENCHMARK(sim_integer_call_inline)->Unit(benchmark::kMillisecond);

void sim_integer_calls_in_flight(benchmark::State& state) {
  run_calls(state, StackPlacement::inline_, /*oracles=*/false, &keep_many_in_flight);
}
BENCHMARK(sim_integer_calls_in_flight)->Unit(benchmark::kMillisecond);

void sim_integer_call_with_oracles(benchmark::State& state) {
  run_calls(state, StackPlacement::pool, /*oracles=*/true);
}
BENCHMARK(sim_integer_call_with_oracles)->Unit(benchmark::kMillisecond);

// A whole run of few calls: what a seed costs.
void sim_small_run(benchmark::State& state) {
  FunctionRegistry registry;
  registry.function("add", &add);
  Program program(std::move(registry));
  program.worker("server", [](Worker&) {});
  program.worker(
      "client",
      [](Worker& worker) {
        for (int64_t i = 0; i < 50; ++i) (void)worker.rpc_sync("server", &add, i, i);
      },
      Count{2});
  fibers::StackPool stacks;
  uint64_t seed = 0;
  for (auto _ : state) {
    Cluster cluster(Seed{++seed}, program, {.stacks = &stacks});
    cluster.run();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(sim_small_run)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rehearsal::sim
