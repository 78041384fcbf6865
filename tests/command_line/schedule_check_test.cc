#include "command_line/schedule_check.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/worker.h"
#include "tests/scenarios/simulated.h"

namespace rehearsal::command_line {
namespace {

// Keeps what is pushed in the order in which it comes.
struct Pushed {
  void push(const int64_t& number) { numbers.push_back(number); }
  std::vector<int64_t> all() const { return numbers; }
  std::vector<int64_t> numbers;
};

int64_t push_from(CallContext& context, const RRef<Pushed>& pushed, const int64_t& number) {
  for (int64_t i = 0; i < 4; ++i) context.rpc_sync(pushed, &Pushed::push, number);
  return number;
}

// Two workers push side by side; the result is the list as it came, or sorted.
Scenario racing(bool sorted) {
  Scenario scenario;
  scenario.name = "racing";
  scenario.schedule_independent = true;
  scenario.program = [sorted](const ScenarioRun& run) {
    FunctionRegistry registry;
    registry.function("push_from", &push_from);
    registry.type<Pushed>("Pushed").method("push", &Pushed::push).method("all", &Pushed::all);
    Program program(std::move(registry));
    program.worker("leader", [sorted, &reporter = run.reporter](Worker& worker) {
      const RRef<Pushed> pushed = worker.rref(Pushed{});
      const Future<int64_t> one = worker.rpc_async("pusher0", &push_from, pushed, int64_t{1});
      const Future<int64_t> two = worker.rpc_async("pusher1", &push_from, pushed, int64_t{2});
      (void)(one.wait() + two.wait());
      std::vector<int64_t> numbers = worker.rpc_sync(pushed, &Pushed::all);
      if (sorted) std::sort(numbers.begin(), numbers.end());
      reporter.results.tensor("numbers", at::tensor(numbers));
    });
    program.worker(
        "pusher", [](Worker&) {}, Count{2});
    return program;
  };
  return scenario;
}

// The seeds of the first 30 that fail, with how.
std::vector<sim::RunFailure> failures(const Scenario& scenario, sim::FaultLevel faults) {
  std::vector<sim::RunFailure> found;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const RunOutcome outcome = simulated(scenario, seed, faults).outcome;
    if (!outcome.ok) found.push_back(outcome.failure.value_or(sim::RunFailure{}));
  }
  return found;
}

TEST(ScheduleIndependence, FiresWhenTheResultDependsOnTheOrderOfMessages) {
  // Goal: a race in a program that says that it has none. Method: the order of pushes as result.
  const std::vector<sim::RunFailure> found =
      failures(racing(/*sorted=*/false), sim::FaultLevel::mild);
  ASSERT_FALSE(found.empty());
  for (const sim::RunFailure& failure : found) {
    EXPECT_EQ(failure.oracle, "schedule independence");
    EXPECT_EQ(failure.object, "racing");
    EXPECT_EQ(failure.message.find("tensor 'numbers' differs from the run without faults: "), 0u)
        << failure.message;
  }
}

TEST(ScheduleIndependence, IsSilentWhenTheResultDoesNotOrTheProgramDoesNotSayItDoesNot) {
  // Goal: no false alarm. Method: the sorted list; and the racing one without the claim.
  EXPECT_TRUE(failures(racing(/*sorted=*/true), sim::FaultLevel::hostile).empty());
  Scenario free = racing(/*sorted=*/false);
  free.schedule_independent = false;
  EXPECT_TRUE(failures(free, sim::FaultLevel::hostile).empty());
}

}  // namespace
}  // namespace rehearsal::command_line
