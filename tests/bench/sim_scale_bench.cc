// How the simulator fares with many workers, with tensors, and against the wall clock.
#include <ATen/Functions.h>
#include <benchmark/benchmark.h>

#include <chrono>

#include "core/api/worker.h"
#include "core/fibers/stack_pool.h"
#include "sim/cluster.h"

namespace rehearsal::sim {
namespace {

int64_t sum_of(int64_t one, int64_t other) { return one + other; }
at::Tensor echo(const at::Tensor& tensor) { return tensor; }

FunctionRegistry inline_functions() {
  FunctionRegistry registry;
  registry.function("add", &sum_of).runs_inline();
  registry.function("echo", &echo).runs_inline();
  return registry;
}

// The reports of a program's mains while they run.
struct Progress {
  uint32_t started = 0;
  uint32_t done = 0;
  uint64_t calls = 0;
};

constexpr uint32_t kCallsTogether = 20'000;

// Of each worker, until what joining leaves to be acknowledged has been.
constexpr uint32_t kCallsBefore = 50;

// Every worker calls its neighbour, one call after another; `calls` of them each.
Program ring_of(uint32_t workers, uint32_t calls, Progress& progress) {
  Program program(inline_functions());
  const auto main = [workers, calls, &progress](Worker& worker) {
    const WorkerId neighbour{(worker.id().value + 1) % workers};
    for (uint32_t i = 0; i < kCallsBefore; ++i) (void)worker.rpc_sync(neighbour, &sum_of, i, i);
    ++progress.started;
    for (uint32_t i = 0; i < calls; ++i) {
      (void)worker.rpc_sync(neighbour, &sum_of, int64_t{i}, int64_t{1});
      ++progress.calls;
    }
    ++progress.done;
  };
  program.worker("worker", main, Count{workers});
  return program;
}

// The cost of a call among so many workers, once they have joined and until they leave: everybody
// meets everybody then, which is not counted.
void sim_call_among_workers(benchmark::State& state) {
  const auto workers = static_cast<uint32_t>(state.range(0));
  fibers::StackPool stacks;
  uint64_t calls = 0;
  uint64_t seed = 0;
  for (auto _ : state) {
    state.PauseTiming();
    Progress progress;
    const Program program = ring_of(workers, std::max(20u, kCallsTogether / workers), progress);
    {
      Cluster cluster(Seed{++seed}, program,
                      {.faults = FaultLevel::none, .oracles = false, .stacks = &stacks});
      cluster.run_until([&] { return progress.started == workers; });
      const uint64_t before = progress.calls;
      state.ResumeTiming();
      cluster.run_until([&] { return progress.done == workers; });
      state.PauseTiming();
      calls += progress.calls - before;
      cluster.run();
    }
    state.ResumeTiming();
  }
  state.SetItemsProcessed(static_cast<int64_t>(calls));
}
BENCHMARK(sim_call_among_workers)
    ->Arg(2)
    ->Arg(10)
    ->Arg(100)
    ->Unit(benchmark::kMillisecond)
    ->MinTime(0.2);
BENCHMARK(sim_call_among_workers)->Arg(1000)->Unit(benchmark::kMillisecond)->Iterations(1);

void sim_tensor_echo_1_kb(benchmark::State& state) {
  constexpr int64_t kCalls = 5'000;
  Program program(inline_functions());
  program.worker("server", [](Worker&) {});
  program.worker("client", [](Worker& worker) {
    const at::Tensor tensor = at::arange(256, at::kFloat);
    for (int64_t i = 0; i < kCalls; ++i)
      if (worker.rpc_sync("server", &echo, tensor).numel() != 256)
        throw std::logic_error("another tensor came back");
  });
  fibers::StackPool stacks;
  uint64_t seed = 0;
  for (auto _ : state) {
    Cluster cluster(Seed{++seed}, program,
                    {.faults = FaultLevel::none, .oracles = false, .stacks = &stacks});
    cluster.run();
  }
  state.SetItemsProcessed(state.iterations() * kCalls);
}
BENCHMARK(sim_tensor_echo_1_kb)->Unit(benchmark::kMillisecond);

// Four workers that always have a call under way to their neighbour, over links of 5 ms each way.
void sim_four_workers_on_5_ms_links(benchmark::State& state) {
  fibers::StackPool stacks;
  uint64_t seed = 0;
  double simulated = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (auto _ : state) {
    Progress progress;
    const Program program = ring_of(4, 5'000, progress);
    Cluster cluster(Seed{++seed}, program,
                    {.faults = FaultLevel::none, .oracles = false, .stacks = &stacks});
    cluster.network().everywhere().delay(std::chrono::milliseconds(5));
    cluster.run();
    simulated += std::chrono::duration<double>(cluster.now().time_since_epoch()).count();
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  state.counters["times_real_time"] = simulated / passed.count();
}
BENCHMARK(sim_four_workers_on_5_ms_links)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearsal::sim
