// The cost of a fiber, beside the floor: a bare Boost.Context switch that saves nothing.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <benchmark/benchmark.h>

#include <boost/context/fiber.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/execution.h"
#include "core/fibers/default_generator.h"
#include "core/fibers/fiber.h"

namespace rehearsal::fibers {
namespace {

Stack stack_of(StackPool& pool) { return std::move(pool.take()).value(); }

// A fiber that suspends until it is told to stop, under a LibTorch guard.
template <class Guard>
class Spinner {
 public:
  explicit Spinner(StackPool& pool)
      : fiber_("spinner", stack_of(pool), [this] {
          Guard guard;
          while (!stop_) fiber_.suspend();
        }) {
    fiber_.resume();
  }
  ~Spinner() {
    stop_ = true;
    fiber_.resume();
  }
  void turn() { fiber_.resume(); }

 private:
  bool stop_ = false;
  Fiber fiber_;
};

struct NoGuard {
  NoGuard() {}
};

void fiber_floor_bare_switch(benchmark::State& state) {
  bool stop = false;
  boost::context::fiber fiber([&stop](boost::context::fiber&& resumer) {
    while (!stop) resumer = std::move(resumer).resume();
    return std::move(resumer);
  });
  for (auto _ : state) fiber = std::move(fiber).resume();
  stop = true;
  fiber = std::move(fiber).resume();
}
BENCHMARK(fiber_floor_bare_switch);

template <class Guard>
void fiber_resume_and_suspend(benchmark::State& state) {
  StackPool pool;
  Spinner<Guard> spinner(pool);
  for (auto _ : state) spinner.turn();
}
BENCHMARK(fiber_resume_and_suspend<NoGuard>);
BENCHMARK(fiber_resume_and_suspend<at::NoGradGuard>);
BENCHMARK(fiber_resume_and_suspend<at::DisableRecordFunctionGuard>);

// Many fibers by turns: what the cache costs.
void fiber_ring(benchmark::State& state) {
  StackPool pool;
  std::vector<std::unique_ptr<Spinner<NoGuard>>> spinners;
  for (int64_t i = 0; i < state.range(0); ++i)
    spinners.push_back(std::make_unique<Spinner<NoGuard>>(pool));
  size_t next = 0;
  for (auto _ : state) {
    spinners[next]->turn();
    if (++next == spinners.size()) next = 0;
  }
}
BENCHMARK(fiber_ring)->Arg(10)->Arg(100)->Arg(1'000)->Arg(10'000);

void fiber_create_run_destroy(benchmark::State& state) {
  StackPool pool;
  int ran = 0;
  for (auto _ : state) {
    Fiber fiber("short", stack_of(pool), [&ran] { ++ran; });
    fiber.resume();
  }
  benchmark::DoNotOptimize(ran);
}
BENCHMARK(fiber_create_run_destroy);

void fiber_new_stack(benchmark::State& state) {
  StackPool pool({.idle_max = 0});
  for (auto _ : state) benchmark::DoNotOptimize(stack_of(pool).top()[-1] = std::byte{1});
}
BENCHMARK(fiber_new_stack);

void default_thread_state_guard(benchmark::State& state) {
  for (auto _ : state) DefaultThreadState guard;
}
BENCHMARK(default_thread_state_guard);

void default_generator_of_execution(benchmark::State& state) {
  Execution execution(CausalId{}, "bench", Seed{1});
  ScopedExecution scope(&execution);
  for (auto _ : state) benchmark::DoNotOptimize(&at::detail::getDefaultCPUGenerator());
}
BENCHMARK(default_generator_of_execution);

}  // namespace
}  // namespace rehearsal::fibers
