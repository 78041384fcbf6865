// A pass that is under way: it holds no stack but its starter's, knows no call's time-out, and
// leaves other passes alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/core/autograd/remote_model.h"
#include "tests/effort.h"

namespace rehearsal::testing {
namespace {

using sim::Cluster;
using sim::ClusterOptions;
using sim::FaultLevel;
using std::chrono::seconds;

void wait_at_the_end(Worker&) {}

// x · 2^(hops + 1), to and fro between the workers "left" and "right".
at::Tensor doubled_in_turn(CallContext& call, const at::Tensor& x, int64_t hops) {
  if (hops == 0) return x * 2;
  const std::string to = call.name() == "left" ? "right" : "left";
  return call.rpc_sync(to, &doubled_in_turn, x * 2, hops - 1);
}

at::Tensor thrice(const at::Tensor& x) { return x * 3; }

FunctionRegistry turns() {
  FunctionRegistry registry = layer_functions();
  registry.function("doubled_in_turn", &doubled_in_turn).function("thrice", &thrice);
  return registry;
}

TEST(PassUnderWay, HoldsNoStackInACycleOfWorkers) {
  // Goal: a pass that comes back to a worker, however often, needs no stack there. Method: ten
  // hops; how many stacks wait at the workers of the cycle while each of them has the pass.
  Program program(turns());
  program.worker("trainer", [](Worker& worker) {
    const at::Tensor x = at::ones({2}).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    context.backward({context.rpc_sync("left", &doubled_in_turn, x, int64_t{9}).sum()});
    EXPECT_TRUE(equal_bits(context.get_gradients().find(x), at::full({2}, 1024.F)));
  });
  program.worker("left", wait_at_the_end).worker("right", wait_at_the_end);
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  uint64_t calls_held = 0;
  uint64_t pass_held = 0;
  uint64_t looked = 0;
  (void)cluster.run_until([&] {
    for (const char* name : {"left", "right"}) {
      const NodeCensus census = cluster.node(name).census();
      (census.passes > 0 ? pass_held : calls_held) =
          std::max(census.passes > 0 ? pass_held : calls_held, census.parked);
      looked += census.passes;
    }
    return !cluster.alive("trainer");
  });
  EXPECT_GT(looked, 20u);
  EXPECT_GE(calls_held, 5u);  // A call waits for the one that it makes.
  EXPECT_EQ(pass_held, 1u);   // The main, at its shutdown.
  EXPECT_TRUE(cluster.run().ok);
}

TEST(PassUnderWay, MayLastLongerThanAnyCall) {
  // Goal: a pass has a deadline only if it is given one. Method: eight calls one behind the other
  // over a network of six seconds: each call is back in time, the pass takes longer than a call
  // may.
  Program program(turns());
  const Cluster* running = nullptr;
  program.worker("trainer", [&running](Worker& worker) {
    const at::Tensor x = at::ones({2}).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    at::Tensor y = x;
    for (int i = 0; i < 16; ++i)
      y = context.rpc_sync(i % 2 == 0 ? "left" : "right", &doubled_in_turn, y, int64_t{0});
    const Instant begun = running->now();
    context.backward({y.sum()});
    EXPECT_GT(running->now() - begun, seconds(70));
    EXPECT_TRUE(equal_bits(context.get_gradients().find(x), at::full({2}, 65536.F)));
  });
  program.worker("left", wait_at_the_end).worker("right", wait_at_the_end);
  ClusterOptions slow{.faults = FaultLevel::none};
  slow.network.link.delay = net_fake::Delay::uniform(seconds(6), seconds(6));
  Cluster cluster(Seed{1}, program, slow);
  running = &cluster;
  cluster.run();
}

TEST(PassUnderWay, GoesOnBesideOthersOverTheSameParameters) {
  // Goal: passes of different contexts are at one worker at the same time, and each has its own
  // gradients. Method: three trainers over one layer; the most passes that the server had at once.
  Program program(turns());
  program.worker("server", [](Worker& worker) {
    worker.publish("layer", worker.remote<Layer>("server", 4, 1));
  });
  program.worker(
      "trainer",
      [](Worker& worker) {
        const auto number = static_cast<int64_t>(worker.id().value);
        const auto layer = worker.lookup<Layer>("server", "layer");
        const AutogradContext context = worker.autograd_context();
        const at::Tensor input = numbers({3, 4}, 10 * number);
        context.backward({context.rpc_sync(layer, &Layer::scalar, input)});
        Layer same(4, 1);
        const auto expected = local_gradients(same.scalar(input), {same.weight_});
        EXPECT_TRUE(equal_bits(context.rpc_sync(layer, &Layer::gradients).at(0), expected[0]));
      },
      Count{3});
  uint64_t most = 0;
  EXPECT_TRUE(sim::holds_for_seeds(tries(8), [&](Seed seed) {
    Cluster cluster(seed, program);
    (void)cluster.run_until([&] {
      most = std::max(most, cluster.node("server").census().passes);
      return false;
    });
    cluster.run();
  }));
  EXPECT_EQ(most, 3u);
}

TEST(PassUnderWay, AValueThatIsFetchedTwiceGetsTheGradientsOfBoth) {
  // Goal: each fetch is a use of its own, whether the roots depend on both or on one. Method: the
  // gradient of what the value was made from.
  Program program(turns());
  program.worker("trainer", [](Worker& worker) {
    for (const bool both : {true, false}) {
      const at::Tensor x = at::ones({2}).requires_grad_();
      const AutogradContext context = worker.autograd_context();
      const RRef<at::Tensor> far = context.remote("left", &thrice, x);
      const at::Tensor once = context.to_here(far);
      const at::Tensor again = context.to_here(far);
      context.backward({both ? (once * again).sum() : again.sum()});
      const at::Tensor gradient = context.get_gradients().find(x);
      EXPECT_TRUE(equal_bits(gradient, at::full({2}, both ? 18.F : 3.F))) << both;
    }
  });
  program.worker("left", wait_at_the_end).worker("right", wait_at_the_end);
  EXPECT_TRUE(sim::holds_for_seeds(
      tries(4), [&](Seed seed) { Cluster(seed, program, {.faults = FaultLevel::hostile}).run(); }));
}

bool equal_tables(const NodeCensus& one, const NodeCensus& other) {
  return std::memcmp(&one, &other, sizeof one) == 0;
}

TEST(PassUnderWay, AThousandOverOneGraphLeaveTheSameAtEveryWorker) {
  // Goal: a pass leaves nothing but its gradients, whoever takes part. Method: the tables of both
  // other workers after the first pass, and after a thousand.
  Program program(turns());
  Cluster* running = nullptr;
  program.worker("trainer", [&running](Worker& worker) {
    const at::Tensor x = at::ones({2}).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    const at::Tensor loss = context.rpc_sync("left", &doubled_in_turn, x, int64_t{3}).sum();
    const auto tables = [&] {
      worker.sleep(seconds(5));  // Until all that was sent is acknowledged.
      return std::pair(running->node("left").census(), running->node("right").census());
    };
    context.backward({loss}, /*retain_graph=*/true);
    const auto first = tables();
    for (int pass = 1; pass < 1000; ++pass) context.backward({loss}, /*retain_graph=*/true);
    const auto last = tables();
    EXPECT_TRUE(equal_tables(first.first, last.first));
    EXPECT_TRUE(equal_tables(first.second, last.second));
    EXPECT_TRUE(equal_bits(context.get_gradients().find(x), at::full({2}, 16'000.F)));
  });
  program.worker("left", wait_at_the_end).worker("right", wait_at_the_end);
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  running = &cluster;
  cluster.run();
}

}  // namespace
}  // namespace rehearsal::testing
