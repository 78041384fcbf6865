#include "tests/primitives.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/api/program.h"
#include "core/api/worker.h"
#include "sim/explore/explorer.h"

// Every order of what happens to executions that wait in primitives of Boost.Fiber.
namespace rehearsal::sim::explore {
namespace {

struct Shared {
  explicit Shared(int64_t number) : kind(make_primitive(number)) {}
  const std::unique_ptr<Primitive> kind;
};

void waits(CallContext& context) { context.state<Shared>().kind->wait(context); }
void wakes(CallContext& context) { context.state<Shared>().kind->wake(context); }

// One call waits, one wakes it. The errors of both are right where somebody is lost.
Program program_of(int64_t kind) {
  FunctionRegistry registry;
  registry.function("pong", &pong).function("waits", &waits).function("wakes", &wakes);
  Program program(std::move(registry));
  program.worker("caller", [](Worker& worker) {
    const Future<Unit> waiter = worker.rpc_async("server", &waits);
    const Future<Unit> waker = worker.rpc_async("server", &wakes);
    for (const Future<Unit>& end : {waiter, waker})
      if (const Result<Unit> result = end.result(); !result.ok()) {
        const ErrorKind kind = result.error().kind;
        EXPECT_TRUE(kind == ErrorKind::peer_lost || kind == ErrorKind::fenced)
            << to_string(result.error());
      }
  });
  program.worker("server").state<Shared>(kind);
  return program;
}

class Primitives : public testing::TestWithParam<int64_t> {};

TEST_P(Primitives, HoldInEveryOrderAndWithEachFaultAtAnyPoint) {
  // Goal: a wait is woken, and ends when its caller or its worker is lost; no order of a wake and
  // an end is left out. Method: all schedules, with a cut, a crash, or one who gives the other up.
  const Program program = program_of(GetParam());
  const Exploration explored = explore(program, {.faults_max = 1});
  EXPECT_TRUE(explored.complete);
  EXPECT_FALSE(explored.failing) << to_string(*explored.failing) << "\n"
                                 << describe_failure(explored.report);
  std::cout << explored.schedules() << " schedules\n";
}

INSTANTIATE_TEST_SUITE_P(Kinds, Primitives, testing::Range(int64_t{0}, int64_t{kPrimitives}));

}  // namespace
}  // namespace rehearsal::sim::explore
