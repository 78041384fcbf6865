// Passes over graphs of every shape and kind of node, beside the same graph in one process.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/core/autograd/remote_model.h"
#include "tests/effort.h"

namespace rehearsal::testing {
namespace {

using sim::Cluster;
using sim::FaultLevel;

at::Tensor twice(const at::Tensor& x) { return x * 2; }

// x · 2 · 2 · …: to and fro between the two workers, once for each hop.
at::Tensor bounce(CallContext& call, const at::Tensor& x, int64_t hops) {
  if (hops == 0) return x * 2;
  const std::string to = call.name() == "a" ? "b" : "a";
  return call.rpc_sync(to, &bounce, x * 2, hops - 1) * 1;
}

std::pair<at::Tensor, at::Tensor> largest(const at::Tensor& x) {
  const auto [values, places] = at::topk(x, 2);
  return {values, places};
}

at::Tensor changed_in_place(const at::Tensor& x) {
  at::Tensor y = x * 1;
  y.slice(0, 0, 2).mul_(3);
  return y.view({2, 2}).t();
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("twice", &twice)
      .function("bounce", &bounce)
      .function("largest", &largest)
      .function("changed_in_place", &changed_in_place);
  return registry;
}

// Runs `main` as worker "trainer" beside "a" and "b", under hostile faults.
void expect_to_hold(const std::function<void(Worker&)>& main, uint64_t seeds = 4) {
  Program program(functions());
  program.worker("trainer", main).worker("a", [](Worker&) {}).worker("b", [](Worker&) {});
  EXPECT_TRUE(sim::holds_for_seeds(tries(seeds), [&](Seed seed) {
    Cluster(seed, program, {.faults = FaultLevel::hostile}).run();
  }));
}

TEST(GraphShapes, AHundredHopsToAndFro) {
  // Goal: a graph that goes a hundred times through two workers. Method: calls in calls, factors.
  expect_to_hold([](Worker& worker) {
    const at::Tensor x = at::ones({2}).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    context.backward({context.rpc_sync("a", &bounce, x, int64_t{100}).sum()});
    EXPECT_TRUE(equal_bits(context.get_gradients().find(x), at::full({2}, std::ldexp(1.F, 101))));
  });
}

TEST(GraphShapes, AThousandCallsOfOneContext) {
  // Goal: many messages of one context. Method: a thousand calls whose results are added up.
  expect_to_hold(
      [](Worker& worker) {
        const at::Tensor x = at::ones({}).requires_grad_();
        const AutogradContext context = worker.autograd_context();
        std::vector<Future<at::Tensor>> calls;
        for (int i = 0; i < 1000; ++i)
          calls.push_back(context.rpc_async(i % 2 == 0 ? "a" : "b", &twice, x));
        std::vector<at::Tensor> results;
        for (const auto& call : calls) results.push_back(call.wait());
        context.backward({at::stack(results).sum()});
        EXPECT_EQ(context.get_gradients().find(x).item<float>(), 2000.F);
      },
      1);
}

TEST(GraphShapes, CallsToOneself) {
  // Goal: what a worker sends itself is like what it sends others. Method: a diamond of them.
  expect_to_hold([](Worker& worker) {
    const at::Tensor x = at::ones({2}).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    const at::Tensor once = context.rpc_sync("trainer", &twice, x);
    const at::Tensor left = context.rpc_sync("trainer", &twice, once);
    const at::Tensor right = context.rpc_sync("a", &twice, once);
    (void)context.rpc_sync("trainer", &twice, once * 5);
    context.backward({(left + right).sum()});
    EXPECT_TRUE(equal_bits(context.get_gradients().find(x), at::full({2}, 8.F)));
  });
}

TEST(GraphShapes, ReceivedTensorsAreChangedInPlaceAndViewed) {
  // Goal: views and in-place changes on both sides. Method: beside the local graph.
  expect_to_hold([](Worker& worker) {
    const at::Tensor x = at::arange(1, 5, at::kFloat).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    const auto on = [](at::Tensor y) {
      y.mul_(2);
      y.select(0, 1).add_(y.select(0, 0));
      return (y * y).sum();
    };
    context.backward({on(context.rpc_sync("a", &changed_in_place, x))});
    const at::Tensor same = at::arange(1, 5, at::kFloat).requires_grad_();
    const auto expected = local_gradients(on(changed_in_place(same) * 1), {same});
    EXPECT_TRUE(equal_bits(context.get_gradients().find(x), expected[0]));
  });
}

TEST(GraphShapes, ComplexAndHalfTensorsAndIndices) {
  // Goal: every floating type, and results without gradients. Method: each through a far call.
  expect_to_hold([](Worker& worker) {
    for (const auto type : {at::kHalf, at::kBFloat16, at::kDouble, at::kComplexFloat}) {
      const at::Tensor x = at::arange(1, 5, at::kFloat).to(type).requires_grad_();
      const AutogradContext context = worker.autograd_context();
      const at::Tensor loss = at::real((context.rpc_sync("a", &twice, x) * x).sum());
      context.backward({loss});
      const at::Tensor same = x.detach().clone().requires_grad_();
      const auto expected = local_gradients(at::real((twice(same) * same).sum()), {same});
      EXPECT_TRUE(equal_bits(context.get_gradients().find(x), expected[0])) << type;
    }
    const at::Tensor x = at::arange(1, 5, at::kFloat).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    const auto [values, places] = context.rpc_sync("a", &largest, x);
    EXPECT_FALSE(places.requires_grad());
    context.backward({values.sum()});
    EXPECT_TRUE(equal_bits(context.get_gradients().find(x), at::tensor({0.F, 0.F, 1.F, 1.F})));
  });
}

// ---- user code within a pass --------------------------------------------------------

// The worker that a custom function calls through.
int64_t hidden(const Worker& worker) { return reinterpret_cast<int64_t>(&worker); }
const Worker& shown(const c10::IValue& hidden) {
  return *reinterpret_cast<const Worker*>(hidden.toInt());
}

// Passes its input on; in the pass another worker doubles the gradient.
struct DoubledElsewhere : torch::autograd::Function<DoubledElsewhere> {
  static at::Tensor forward(torch::autograd::AutogradContext* saved, const at::Tensor& x,
                            int64_t worker) {
    saved->saved_data["worker"] = worker;
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* saved,
                                                 torch::autograd::variable_list gradients) {
    return {shown(saved->saved_data["worker"]).rpc_sync("b", &twice, gradients.at(0)), {}};
  }
};

TEST(GraphShapes, ANodeAndAHookCallOverTheNetworkWithinThePass) {
  // Goal: user code of a pass may park. Method: a custom function and a hook that call.
  expect_to_hold([](Worker& worker) {
    const at::Tensor x = at::ones({2}).requires_grad_();
    x.register_hook(
        [&worker](const at::Tensor& gradient) { return worker.rpc_sync("a", &twice, gradient); });
    const AutogradContext context = worker.autograd_context();
    const at::Tensor y = DoubledElsewhere::apply(context.rpc_sync("a", &twice, x), hidden(worker));
    context.backward({y.sum()});
    EXPECT_TRUE(equal_bits(context.get_gradients().find(x), at::full({2}, 8.F)));
  });
}

// tanh(far(x)) without keeping what lies between: the pass computes it again, recorded, and runs a
// pass of its own over it (re-entrant checkpointing).
struct Checkpointed : torch::autograd::Function<Checkpointed> {
  static at::Tensor forward(torch::autograd::AutogradContext* saved, const at::Tensor& x,
                            int64_t worker, int64_t context) {
    saved->saved_data["context"] = context;
    saved->save_for_backward({x});
    const Worker& caller = shown(worker);
    return at::tanh(caller.rpc_sync("a", &twice, x.detach()));
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* saved,
                                                 torch::autograd::variable_list gradients) {
    const auto& context = *reinterpret_cast<const AutogradContext*>(  // The caller's, not ours.
        saved->saved_data["context"].toInt());
    const at::Tensor x = saved->get_saved_variables().at(0).detach().requires_grad_();
    const at::AutoGradMode recorded(true);
    const at::Tensor y = at::tanh(context.rpc_sync("a", &twice, x));
    context.backward({(y * gradients.at(0)).sum()});
    return {context.get_gradients().find(x), {}, {}};
  }
};

TEST(GraphShapes, ACheckpointRunsAPassWithinThePass) {
  // Goal: re-entrant checkpointing across workers. Method: beside the graph that keeps all.
  expect_to_hold([](Worker& worker) {
    const at::Tensor x = numbers({4}, 3).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    const at::Tensor in = context.rpc_sync("b", &twice, x);
    const at::Tensor y =
        Checkpointed::apply(in, hidden(worker), reinterpret_cast<int64_t>(&context));
    context.backward({y.sum()});
    const at::Tensor same = x.detach().clone().requires_grad_();
    const auto expected = local_gradients(at::tanh(twice(twice(same))).sum(), {same});
    EXPECT_TRUE(equal_bits(context.get_gradients().find(x), expected[0]));
  });
}

// The same through saved-tensor recomputation: the far result is asked for again when the node that
// needs it runs (checkpointing that is not re-entrant).
struct Recomputed : torch::autograd::Function<Recomputed> {
  static at::Tensor forward(torch::autograd::AutogradContext* saved, const at::Tensor& x,
                            int64_t worker) {
    saved->saved_data["worker"] = worker;
    saved->save_for_backward({x});
    return at::tanh(shown(worker).rpc_sync("a", &twice, x.detach()));
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* saved,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor x = saved->get_saved_variables().at(0).detach();
    const Worker& worker = shown(saved->saved_data["worker"]);
    const at::Tensor y = at::tanh(worker.rpc_sync("a", &twice, x));
    return {gradients.at(0) * (1 - y * y) * 2, {}};
  }
};

TEST(GraphShapes, ANodeComputesAgainWhatItNeeds) {
  // Goal: recomputation over the network within a node. Method: beside the closed form.
  expect_to_hold([](Worker& worker) {
    const at::Tensor x = numbers({4}, 3).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    const at::Tensor in = context.rpc_sync("b", &twice, x);
    context.backward({Recomputed::apply(in, hidden(worker)).sum()});
    const at::Tensor y = at::tanh(twice(twice(x.detach())));
    EXPECT_TRUE(equal_bits(context.get_gradients().find(x), twice((1 - y * y) * 2)));
  });
}

TEST(GraphShapes, PassesOfDifferentContextsShareTheirParameters) {
  // Goal: each context gets its own gradients of one parameter. Method: ten side by side, kept
  // apart.
  Program program(layer_functions());
  program.worker("trainer", [](Worker& worker) {
    auto layer = worker.remote<Layer>("server", 4, 1);
    std::vector<AutogradContext> contexts;
    std::vector<at::Tensor> losses;
    for (int i = 0; i < 10; ++i) {
      contexts.push_back(worker.autograd_context());
      losses.push_back(contexts.back().rpc_sync(layer, &Layer::scalar, numbers({3, 4}, i)));
    }
    for (int i = 9; i >= 0; --i) contexts.at(i).backward({losses.at(i)});
    Layer same(4, 1);
    for (int i = 0; i < 10; ++i) {
      const auto expected = local_gradients(same.scalar(numbers({3, 4}, i)), {same.weight_});
      EXPECT_TRUE(equal_bits(contexts.at(i).rpc_sync(layer, &Layer::gradients).at(0), expected[0]));
    }
  });
  program.worker("server", [](Worker&) {});
  EXPECT_TRUE(sim::holds_for_seeds(tries(4), [&](Seed seed) { Cluster(seed, program).run(); }));
}

}  // namespace
}  // namespace rehearsal::testing
