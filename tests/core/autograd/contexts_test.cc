// How contexts come and go at the workers that calls reach.
#include <gtest/gtest.h>

#include <optional>

#include "coverage/marks.h"
#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/core/autograd/remote_model.h"
#include "tests/effort.h"

namespace rehearsal::testing {
namespace {

using sim::Cluster;
using sim::ClusterOptions;
using sim::FaultLevel;

void serve(Worker&) {}

// A context reaches "b" through "a" only; it ends there, too, while all go on.
TEST(Contexts, EndAtWorkersThatWereMetThroughOthers) {
  bool dropped = false;
  Program program(layer_functions());
  program.worker("trainer", [&](Worker& worker) {
    auto a = worker.remote<Layer>("a", 4, 1);
    auto b = worker.remote<Layer>("b", 4, 2);
    {
      const AutogradContext context = worker.autograd_context();
      (void)context.rpc_sync(a, &Layer::forward_through, numbers({3, 4}, 5), b);
    }
    dropped = true;
    for (int i = 0; i < 50; ++i) (void)b.rpc_sync(&Layer::values);
  });
  program.worker("a", serve).worker("b", serve);
  EXPECT_TRUE(sim::holds_for_seeds(tries(8), [&](Seed seed) {
    dropped = false;
    Cluster cluster(seed, program);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.node("b").census().contexts == 1; }));
    EXPECT_FALSE(dropped);
    EXPECT_TRUE(cluster.run_until([&] {
      return cluster.node("a").census().contexts + cluster.node("b").census().contexts == 0;
    }));
    EXPECT_TRUE(dropped);
    EXPECT_EQ(cluster.result("trainer"), nullptr);
    cluster.run();
  }));
}

// The context ends while its calls are still on their way or being served: each call has a value or
// a clear error, and nothing of the context is left.
TEST(Contexts, ThatEndEarlyLeaveNothing) {
  coverage::Marks marks;
  Program program(layer_functions());
  program.worker("trainer", [&](Worker& worker) {
    auto a = worker.remote<Layer>("a", 4, 1);
    auto b = worker.remote<Layer>("b", 4, 2);
    std::vector<Future<at::Tensor>> results;
    {
      const AutogradContext context = worker.autograd_context();
      for (int i = 0; i < 4; ++i)
        results.push_back(context.rpc_async(a, &Layer::forward_through, numbers({3, 4}, 5 + i), b));
      results.push_back(context.rpc_async(b, &Layer::forward, numbers({3, 4}, 9)));
    }
    for (const auto& result : results) {
      const Result<at::Tensor> outcome = result.result();
      if (!outcome.ok()) {
        EXPECT_EQ(outcome.error().kind, ErrorKind::autograd);
      }
    }
  });
  program.worker("a", serve).worker("b", serve);
  EXPECT_TRUE(sim::holds_for_seeds(tries(40), [&](Seed seed) {
    ClusterOptions options{.faults = FaultLevel::hostile};
    options.traces = {&marks};
    Cluster(seed, program, options).run();
  }));
  for (const char* mark : {"a call came for an autograd context that has ended",
                           "a worker met an autograd context that has ended",
                           "tensors were sent in an autograd context that has ended"})
    EXPECT_TRUE(marks.reached(mark)) << mark << "\n" << marks.text();
}

// Goes from layer to layer for a while, and meets the last one at the end.
at::Tensor wander(CallContext& call, const RRef<Layer>& near, const RRef<Layer>& last) {
  at::Tensor value = numbers({3, 4}, 5);
  for (int i = 0; i < 4; ++i) value = call.rpc_sync(near, &Layer::forward, value);
  return call.rpc_sync(last, &Layer::forward, value);
}

// A function that runs at the creator of a context outlives it, and calls somebody who has not met
// it, and would believe the creator that it lives: the call is refused before it is sent.
TEST(Contexts, AreNotBegunAnewByWhatTheirCreatorCallsTooLate) {
  FunctionRegistry functions = layer_functions();
  functions.function("wander", &wander);
  coverage::Marks marks;
  Program program(std::move(functions));
  program.worker("trainer", [&](Worker& worker) {
    auto a = worker.remote<Layer>("a", 4, 1);
    auto b = worker.remote<Layer>("b", 4, 2);
    std::optional<AutogradContext> context = worker.autograd_context();
    const Future<at::Tensor> result = context->rpc_async("trainer", &wander, a, b);
    context.reset();
    (void)result.result();
  });
  program.worker("a", serve).worker("b", serve);
  EXPECT_TRUE(sim::holds_for_seeds(tries(15), [&](Seed seed) {
    ClusterOptions options{.faults = FaultLevel::mild};
    options.traces = {&marks};
    Cluster(seed, program, options).run();
  }));
  EXPECT_TRUE(marks.reached("a call was made in an autograd context that has ended"));
}

// A context made by a function that is being served belongs to the worker that serves it.
void train_nested(CallContext& call, const RRef<Layer>& layer) {
  const AutogradContext context{Calls(call)};
  context.backward({context.rpc_sync(layer, &Layer::scalar, numbers({3, 4}, 5))});
  EXPECT_TRUE(context.rpc_sync(layer, &Layer::gradients).at(0).defined());
}

TEST(Contexts, OfServedFunctionsAreTheirWorkers) {
  FunctionRegistry functions = layer_functions();
  functions.function("train_nested", &train_nested);
  Program program(std::move(functions));
  program.worker("trainer", [&](Worker& worker) {
    auto layer = worker.remote<Layer>("b", 4, 2);
    worker.rpc_sync("a", &train_nested, layer);
  });
  program.worker("a", serve).worker("b", serve);
  EXPECT_TRUE(sim::holds_for_seeds(tries(8), [&](Seed seed) { Cluster(seed, program).run(); }));
}

}  // namespace
}  // namespace rehearsal::testing
