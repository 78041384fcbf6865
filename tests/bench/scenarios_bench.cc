// The cost of a seed of the storm, with all oracles; and how long the agent of `rl` learns.
#include <benchmark/benchmark.h>

#include "scenarios/rl/rl.h"
#include "scenarios/storm/storm.h"
#include "tests/scenarios/simulated.h"

namespace rehearsal {
namespace {

// A storm of about a hundred calls with references, gradients and the faults that the seed draws.
void storm_seed_with_oracles(benchmark::State& state) {
  const Scenario storm = storm_scenario();
  const Options options = storm.options.parse({"operations=6"}, "tiny");
  const command_line::Backends backends = command_line::shipped_backends();
  uint64_t seed = 0;
  int64_t calls = 0;
  for (auto _ : state) {
    ++seed;
    const sim::FaultLevel faults = storm.draw_faults(options, Seed{seed}).faults;
    const SimulatedRun run = simulated_by(backends, storm, seed, faults, {"operations=6"});
    if (!run.outcome.ok) return state.SkipWithError(failure_text(run.outcome).c_str());
    calls += run.outcome.calls;
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["calls"] = static_cast<double>(calls) / static_cast<double>(state.iterations());
}
BENCHMARK(storm_seed_with_oracles)->Unit(benchmark::kMicrosecond);

// Two observers in the simulator; at most 4,000 episodes.
void rl_until_solved(benchmark::State& state) {
  for (auto _ : state) {
    const SimulatedRun run = simulated(rl::scenario(), static_cast<uint64_t>(state.range(0)),
                                       sim::FaultLevel::mild, {"size=full"});
    if (!run.outcome.ok) return state.SkipWithError(failure_text(run.outcome).c_str());
    for (const auto& [name, number] : run.outcome.results.numbers()) state.counters[name] = number;
  }
}
BENCHMARK(rl_until_solved)->DenseRange(1, 5)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace rehearsal
