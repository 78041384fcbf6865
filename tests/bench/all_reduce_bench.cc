#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <benchmark/benchmark.h>

// The wheel is built with these, and c10d's headers ask for them.
#define USE_DISTRIBUTED
#define USE_C10D_GLOO
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <vector>

#include "core/api/process_group.h"
#include "core/api/program.h"
#include "core/api/worker.h"
#include "real_net/worker/real_node.h"

// The sum of a tensor over four workers on loopback, in one process: ours beside gloo, which is
// what c10d uses for tensors in host memory.
namespace rehearsal::real {
namespace {

constexpr uint32_t kWorkers = 4;

// One operation of a worker.
using Step = std::function<void()>;

void repeat(benchmark::State& state, uint32_t rank, const Step& step) {
  step();  // Memory and links are there.
  if (rank == 0) {
    for ([[maybe_unused]] const auto one : state) step();
  } else {
    for (int64_t i = 0; i < static_cast<int64_t>(state.max_iterations); ++i) step();
  }
}

void count_bytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void AllReduceOurs(benchmark::State& state) {
  Program program{FunctionRegistry()};
  program.worker(
      "worker",
      [&state](Worker& worker) {
        const ProcessGroup group(worker);
        const at::Tensor tensor = at::ones({state.range(0) / 4});
        repeat(state, group.rank(), [&] { group.all_reduce(tensor, ReduceOp::average); });
      },
      Count{kWorkers});
  std::vector<std::unique_ptr<RealNode>> nodes;
  for (uint32_t rank = 0; rank < kWorkers; ++rank) {
    RealNodeOptions options;
    options.node.id = {rank};
    options.node.incarnation = incarnation_of({rank}, 1000);
    options.node.names = program.names();
    options.runtime.worker_threads = 0;
    nodes.push_back(std::make_unique<RealNode>(options, program));
  }
  for (uint32_t from = 0; from < kWorkers; ++from)
    for (uint32_t to = 0; to < kWorkers; ++to)
      if (from != to) nodes[from]->set_address({to}, nodes[to]->reached_at());
  std::vector<std::thread> threads;
  for (uint32_t rank = 1; rank < kWorkers; ++rank)
    threads.emplace_back([&, rank] { (void)nodes[rank]->run(); });
  if (!nodes[0]->run().ok()) state.SkipWithError("the worker failed");
  for (std::thread& thread : threads) thread.join();
  count_bytes(state);
}

void AllReduceGloo(benchmark::State& state) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto run = [&](int rank) {
    at::set_num_threads(1);
    const auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::seconds(60));
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
    c10d::ProcessGroupGloo group(store, rank, kWorkers, options);
    std::vector<at::Tensor> tensors = {at::ones({state.range(0) / 4})};
    repeat(state, static_cast<uint32_t>(rank), [&] {
      group.allreduce(tensors)->wait();
      // Gloo knows no average: as c10d's users do.
      tensors[0].div_(static_cast<int64_t>(kWorkers));
    });
  };
  std::vector<std::thread> threads;
  for (int rank = 1; rank < static_cast<int>(kWorkers); ++rank) threads.emplace_back(run, rank);
  run(0);
  for (std::thread& thread : threads) thread.join();
  count_bytes(state);
}

BENCHMARK(AllReduceOurs)
    ->Arg(4 << 10)
    ->Arg(16 << 20)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(AllReduceGloo)
    ->Arg(4 << 10)
    ->Arg(16 << 20)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearsal::real
