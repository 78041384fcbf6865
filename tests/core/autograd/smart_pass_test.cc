// Passes over graphs of which the roots need a part only: SMART mode, gradients that are taken
// back, passes that are recorded themselves.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <string>
#include <vector>

#include "core/base/mutants.h"
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

ClusterOptions watched(coverage::Marks& marks, FaultLevel faults) {
  ClusterOptions options{.faults = faults};
  options.traces = {&marks};
  return options;
}

constexpr const char* kWaits = "a pass waits for what may not come";

void expect_gradients(const AutogradContext& context, const RRef<Layer>& layer,
                      const at::Tensor& weight, const at::Tensor& bias) {
  const std::vector<at::Tensor> found = context.rpc_sync(layer, &Layer::gradients);
  EXPECT_TRUE(equal_bits(found.at(0), weight));
  EXPECT_TRUE(equal_bits(found.at(1), bias));
}

// in → a → b; its result goes on to c, which the loss needs, and back to a, which it does not. So b
// cannot know by itself whether more gradients will come, nor a behind it.
void train_with_a_dead_branch(Worker& worker) {
  const at::Tensor w = numbers({4, 4}, 7).requires_grad_();
  auto a = worker.remote<Layer>("a", 4, 1);
  auto b = worker.remote<Layer>("b", 4, 2);
  auto c = worker.remote<Layer>("c", 4, 3);
  const AutogradContext context = worker.autograd_context();
  const at::Tensor in = at::matmul(numbers({3, 4}, 9), w);
  const at::Tensor once = context.rpc_sync(a, &Layer::forward_through, in, b);
  const at::Tensor used = context.rpc_sync(c, &Layer::forward, once);
  (void)context.rpc_sync(a, &Layer::forward, once * 2);
  context.backward({used.sum()});

  Layer same_a(4, 1);
  Layer same_b(4, 2);
  Layer same_c(4, 3);
  const at::Tensor local =
      same_c.forward(same_b.forward(same_a.forward(at::matmul(numbers({3, 4}, 9), w)))).sum();
  const auto expected = local_gradients(local, {w, same_a.weight_, same_a.bias_, same_b.weight_,
                                                same_b.bias_, same_c.weight_, same_c.bias_});
  EXPECT_TRUE(equal_bits(context.get_gradients().find(w), expected[0]));
  expect_gradients(context, a, expected[1], expected[2]);
  expect_gradients(context, b, expected[3], expected[4]);
  expect_gradients(context, c, expected[5], expected[6]);
}

Program of_four(void (*train)(Worker& worker)) {
  Program program(layer_functions());
  program.worker("trainer", train).worker("a", serve).worker("b", serve).worker("c", serve);
  return program;
}
Program dead_branch() { return of_four(train_with_a_dead_branch); }

TEST(SmartPass, WhatTheRootsDoNotDependOnTakesNoPart) {
  // Goal: the gradients of one process, whatever is lost on the way. Method: hostile seeds.
  const Program program = dead_branch();
  coverage::Marks marks;
  EXPECT_TRUE(sim::holds_for_seeds(tries(20), [&](Seed seed) {
    Cluster(seed, program, watched(marks, FaultLevel::hostile)).run();
  }));
  EXPECT_TRUE(marks.reached(kWaits)) << marks.text();
}

TEST(SmartPass, EachOfItsRulesIsNeeded) {
  // Goal: a search finds the absence of each. Method: leave it out, for some seeds.
  if (!kHasMutants) GTEST_SKIP() << "this build cannot leave out rules";
  const Program program = dead_branch();
  for (const char* rule : {"undecided_ignored", "mark_answered_at_once", "pass_not_resumed",
                           "early_gradient_refused", "unused_result_hangs"}) {
    uint64_t failed = 0;
    for (uint64_t seed = 1; seed <= 200 && failed == 0; ++seed) {
      ClusterOptions options{.faults = FaultLevel::mild};
      options.adjust_node = [rule](NodeOptions& node) { node.mutants = {rule}; };
      // The gradients are looked at by the main: here only whether the pass ends well counts.
      Program without(layer_functions());
      without.worker("trainer", [rows = seed % 2 == 0 ? 5'000 : 3](Worker& worker) {
        auto a = worker.remote<Layer>("a", 4, 1);
        auto b = worker.remote<Layer>("b", 4, 2);
        auto c = worker.remote<Layer>("c", 4, 3);
        const AutogradContext context = worker.autograd_context();
        const at::Tensor w = numbers({4, 4}, 7).requires_grad_();
        // Large gradients go by a lane of their own, and may overtake the waves.
        const at::Tensor in = at::matmul(numbers({rows, 4}, 9), w);
        const at::Tensor once = context.rpc_sync(a, &Layer::forward_through, in, b);
        const at::Tensor used = context.rpc_sync(c, &Layer::forward, once);
        (void)context.rpc_sync(a, &Layer::forward, once * 2);
        context.backward({used.sum()}, false, std::chrono::seconds(20));
      });
      without.worker("a", serve).worker("b", serve).worker("c", serve);
      if (!Cluster(Seed{seed}, without, options).try_run().ok) ++failed;
    }
    EXPECT_GT(failed, 0u) << rule;
  }
}

// Twice in → a → b, of which the loss needs both and a branch of each is dead: the trainer marks
// two results of a.
void train_with_two_dead_branches(Worker& worker) {
  const at::Tensor w = numbers({4, 4}, 7).requires_grad_();
  auto a = worker.remote<Layer>("a", 4, 1);
  auto b = worker.remote<Layer>("b", 4, 2);
  auto c = worker.remote<Layer>("c", 4, 3);
  const AutogradContext context = worker.autograd_context();
  const at::Tensor in = at::matmul(numbers({3, 4}, 9), w);
  const at::Tensor first = context.rpc_sync(a, &Layer::forward_through, in, b);
  const at::Tensor second = context.rpc_sync(a, &Layer::forward_through, in * 3, b);
  const at::Tensor used = context.rpc_sync(c, &Layer::forward, first + second);
  (void)context.rpc_sync(a, &Layer::forward, first * 2);
  (void)context.rpc_sync(a, &Layer::forward, second * 2);
  context.backward({used.sum()}, false, std::chrono::seconds(20));

  Layer same_a(4, 1);
  Layer same_b(4, 2);
  Layer same_c(4, 3);
  const at::Tensor same_in = at::matmul(numbers({3, 4}, 9), w);
  const at::Tensor sum =
      same_b.forward(same_a.forward(same_in)) + same_b.forward(same_a.forward(same_in * 3));
  const auto expected = local_gradients(same_c.forward(sum).sum(), {w});
  EXPECT_TRUE(equal_bits(context.get_gradients().find(w), expected[0]));
}

TEST(SmartPass, MarksForOneWorkerMayTakeSeveralMessages) {
  // Goal: the same gradients, however many tensors one message marks; a search finds that only the
  // first message is sent. Method: one tensor in each, and as many as one likes.
  const Program program = of_four(train_with_two_dead_branches);
  std::array<uint64_t, 2> messages{};
  for (const size_t i : {0u, 1u}) {
    ClusterOptions options{.faults = FaultLevel::none};
    options.adjust_node = [i](NodeOptions& node) { node.marked_max = i == 0 ? 1 : 1 << 16; };
    messages[i] = Cluster(Seed{1}, program, options).run().messages;
  }
  EXPECT_GT(messages[0], messages[1]);
  if (!kHasMutants) return;
  ClusterOptions without{.faults = FaultLevel::none};
  without.adjust_node = [](NodeOptions& node) {
    node.marked_max = 1;
    node.mutants = {"later_marks_not_sent"};
  };
  EXPECT_FALSE(Cluster(Seed{1}, program, without).try_run().ok);
}

TEST(SmartPass, CostsNothingWhereTheRootsDependOnAllThatWasSent) {
  // Goal: not one message more than FAST. Method: the same program in both modes, counted.
  std::array<uint64_t, 2> messages{};
  std::array<Duration, 2> times{};
  for (const PassMode mode : {PassMode::smart, PassMode::fast}) {
    Program program(layer_functions());
    program.worker("trainer", [mode](Worker& worker) {
      const at::Tensor w = numbers({4, 4}, 7).requires_grad_();
      auto a = worker.remote<Layer>("a", 4, 1);
      auto b = worker.remote<Layer>("b", 4, 2);
      const AutogradContext context = worker.autograd_context();
      const at::Tensor in = at::matmul(numbers({3, 4}, 9), w);
      const at::Tensor once = context.rpc_sync(a, &Layer::forward_around, in, b);
      const at::Tensor twice = context.rpc_sync(b, &Layer::forward, once);
      context.backward({(once + twice).sum()}, {.mode = mode});
    });
    program.worker("a", serve).worker("b", serve);
    Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
    const auto& report = cluster.run();
    messages.at(static_cast<size_t>(mode)) = report.messages;
    times.at(static_cast<size_t>(mode)) = report.virtual_time;
  }
  EXPECT_EQ(messages[0], messages[1]);
  EXPECT_EQ(times[0], times[1]);
}

TEST(SmartPass, LossesThatShareNothingArePassesOfTheirOwn) {
  // Goal: each pass takes its part of a context, also one that never left the worker. Method: two
  // layers, a local loss, a pass for each.
  Program program(layer_functions());
  program.worker("trainer", [](Worker& worker) {
    auto a = worker.remote<Layer>("a", 4, 1);
    auto b = worker.remote<Layer>("b", 4, 2);
    const at::Tensor w = numbers({3}, 5).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    const at::Tensor first = context.rpc_sync(a, &Layer::scalar, numbers({3, 4}, 5));
    const at::Tensor second = context.rpc_sync(b, &Layer::scalar, numbers({3, 4}, 6));
    context.backward({(w * 2).sum()});
    EXPECT_TRUE(equal_bits(context.get_gradients().find(w), at::full({3}, 2.F)));
    EXPECT_FALSE(context.rpc_sync(a, &Layer::gradients).at(0).defined());
    Layer same_a(4, 1);
    Layer same_b(4, 2);
    context.backward({first});
    const auto of_a =
        local_gradients(same_a.scalar(numbers({3, 4}, 5)), {same_a.weight_, same_a.bias_});
    expect_gradients(context, a, of_a[0], of_a[1]);
    EXPECT_FALSE(context.rpc_sync(b, &Layer::gradients).at(0).defined());
    context.backward({second});
    const auto of_b =
        local_gradients(same_b.scalar(numbers({3, 4}, 6)), {same_b.weight_, same_b.bias_});
    expect_gradients(context, b, of_b[0], of_b[1]);
    expect_gradients(context, a, of_a[0], of_a[1]);
  });
  program.worker("a", serve).worker("b", serve);
  EXPECT_TRUE(sim::holds_for_seeds(tries(8), [&](Seed seed) { Cluster(seed, program).run(); }));
}

TEST(SmartPass, OneReferenceIsFetchedByThreeOfWhomTwoCount) {
  // Goal: a value that goes three ways gets the gradients of two. Method: an output of a, fetched
  // here and by two layers; one layer's result is dropped.
  Program program(layer_functions());
  program.worker("trainer", [](Worker& worker) {
    auto a = worker.remote<Layer>("a", 4, 1);
    auto b = worker.remote<Layer>("b", 4, 2);
    auto c = worker.remote<Layer>("c", 4, 3);
    const AutogradContext context = worker.autograd_context();
    const RRef<at::Tensor> out = context.remote(a, &Layer::forward, numbers({3, 4}, 5));
    const at::Tensor here = context.to_here(out);
    const at::Tensor used = context.rpc_sync(b, &Layer::forward_fetched, out);
    (void)context.rpc_sync(c, &Layer::forward_fetched, out);
    context.backward({here.sum() + used.sum()});
    Layer same_a(4, 1);
    Layer same_b(4, 2);
    const at::Tensor same = same_a.forward(numbers({3, 4}, 5));
    const auto expected = local_gradients(same.sum() + same_b.forward(same).sum(),
                                          {same_a.weight_, same_a.bias_, same_b.weight_});
    expect_gradients(context, a, expected[0], expected[1]);
    EXPECT_TRUE(equal_bits(context.rpc_sync(b, &Layer::gradients).at(0), expected[2]));
    EXPECT_FALSE(context.rpc_sync(c, &Layer::gradients).at(0).defined());
  });
  program.worker("a", serve).worker("b", serve).worker("c", serve);
  EXPECT_TRUE(sim::holds_for_seeds(tries(10), [&](Seed seed) {
    Cluster(seed, program, {.faults = FaultLevel::hostile}).run();
  }));
}

at::Tensor twice_first(const at::Tensor& first, const at::Tensor&) { return first * 2; }

// Makes zeros of the gradient that it does not get, as custom functions do.
struct Copied : torch::autograd::Function<Copied> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    return {gradients.at(0)};
  }
};

TEST(SmartPass, ATensorThatTheRootsDoNotDependOnGetsNoZeros) {
  // Goal: of a message's tensors each counts by itself, also in what is marked. Method: a call that
  // uses one of two, before and after a result that is not used; in both modes where they may.
  FunctionRegistry registry;
  registry.function("twice_first", &twice_first);
  Program program(std::move(registry));
  program.worker("trainer", [](Worker& worker) {
    for (const bool has_unused : {false, true}) {
      for (const PassMode mode : {PassMode::smart, PassMode::fast}) {
        if (has_unused && mode == PassMode::fast) continue;
        const at::Tensor x = numbers({3}, 5).requires_grad_();
        const at::Tensor y = numbers({3}, 6).requires_grad_();
        const AutogradContext context = worker.autograd_context();
        const at::Tensor once =
            context.rpc_sync("server", &twice_first, Copied::apply(x), Copied::apply(y));
        const at::Tensor out =
            context.rpc_sync("server", &twice_first, Copied::apply(once), Copied::apply(y));
        if (has_unused) (void)context.rpc_sync("server", &twice_first, once, y);
        context.backward({out.sum()}, {.mode = mode});
        const LeafGradients gradients = context.get_gradients();
        EXPECT_TRUE(equal_bits(gradients.find(x), at::full({3}, 4.F)));
        EXPECT_FALSE(gradients.find(y).defined());
      }
    }
  });
  program.worker("server", serve);
  EXPECT_TRUE(sim::holds_for_seeds(tries(10), [&](Seed seed) {
    Cluster(seed, program, {.faults = FaultLevel::hostile}).run();
  }));
}

// ---- a pass that fails is run again -------------------------------------------------

// The pass needs "a" and not "idle", which may die at any moment of it.
void train_beside_the_dead(Worker& worker) {
  auto a = worker.remote<Layer>("a", 4, 1);
  const AutogradContext context = worker.autograd_context();
  const at::Tensor out = context.rpc_sync(a, &Layer::scalar, numbers({3, 4}, 5));
  auto idle = worker.remote<Layer>("idle", 4, 2);
  const auto lost = [](const RpcError& error) {
    return error.kind() == ErrorKind::peer_lost || error.kind() == ErrorKind::fenced;
  };
  try {
    (void)context.rpc_sync(idle, &Layer::scalar, numbers({3, 4}, 6));
  } catch (const RpcError& error) {
    if (!lost(error)) throw;
  }
  for (int tries = 0; tries < 2; ++tries) {
    try {
      context.backward({out}, /*retain_graph=*/true);
      break;
    } catch (const RpcError& error) {
      if (!lost(error) || tries == 1) throw;
      worker.note("taken back", 1);
    }
  }
  Layer same(4, 1);
  const auto expected =
      local_gradients(same.scalar(numbers({3, 4}, 5)), {same.weight_, same.bias_});
  const std::vector<at::Tensor> found = context.rpc_sync(a, &Layer::gradients);
  if (!equal_bits(found.at(0), expected[0])) throw std::logic_error("a wrong gradient");
}

TEST(SmartPass, AWorkerThatThePassDoesNotNeedMayDieAtAnyMoment) {
  // Goal: the same context goes on, and no gradient counts twice: who had committed takes them
  // back. Method: a crash at every event of that worker; with the rule left out it is seen.
  Program program(layer_functions());
  program.worker("trainer", train_beside_the_dead).worker("a", serve).worker("idle", serve);
  coverage::Marks marks;
  const auto fails = [&](uint64_t seeds, const std::vector<std::string>& mutants) {
    bool failed = false;
    for (uint64_t seed = 1; seed <= seeds && !failed; ++seed) {
      ClusterOptions options = watched(marks, FaultLevel::mild);
      options.adjust_node = [&](NodeOptions& node) { node.mutants = mutants; };
      Cluster whole(Seed{seed}, program, options);
      const uint64_t events = whole.run().workers.at(2).decisions;
      for (uint64_t decision = 0; decision < events && !failed; ++decision) {
        options.crash_points = {{WorkerId{2}, decision}};
        Cluster cluster(Seed{seed}, program, options);
        const auto& report = cluster.try_run();
        const bool wrong = report.workers.at(0).error &&
                           report.workers.at(0).error->text.find("wrong") != std::string::npos;
        failed = report.failure || wrong;
      }
    }
    return failed;
  };
  EXPECT_FALSE(fails(tries(4), {}));
  EXPECT_TRUE(marks.reached("the gradients of a pass were taken back")) << marks.text();
  if (!kHasMutants) return;
  EXPECT_TRUE(fails(12, {"committed_not_taken_back"}));
}

// ---- passes that are recorded themselves --------------------------------------------

TEST(RecordedPass, GradientsOfGradientsCrossWorkers) {
  // Goal: a penalty on gradients, at two workers, has the gradients of one process. Method: a pass
  // with create_graph; the squares of all gradients are a second loss.
  Program program(layer_functions());
  program.worker("trainer", [](Worker& worker) {
    const at::Tensor w = numbers({4, 4}, 7).requires_grad_();
    auto a = worker.remote<Layer>("a", 4, 1);
    auto b = worker.remote<Layer>("b", 4, 2);
    const AutogradContext context = worker.autograd_context();
    const at::Tensor in = at::matmul(numbers({3, 4}, 9), w);
    const at::Tensor loss = context.rpc_sync(a, &Layer::forward_through, in, b).sum();
    context.backward({loss}, {.create_graph = true});
    const at::Tensor first = context.get_gradients().find(w);
    ASSERT_TRUE(first.requires_grad());
    const at::Tensor penalty = first.pow(2).sum() + context.rpc_sync(a, &Layer::weight_penalty) +
                               context.rpc_sync(b, &Layer::weight_penalty);
    context.backward({penalty});

    Layer same_a(4, 1);
    Layer same_b(4, 2);
    const at::Tensor same = same_b.forward(same_a.forward(at::matmul(numbers({3, 4}, 9), w))).sum();
    const std::vector<at::Tensor> leaves{w, same_a.weight_, same_b.weight_};
    const auto once = torch::autograd::grad({same}, leaves, {}, true, /*create_graph=*/true);
    const at::Tensor same_penalty =
        once[0].pow(2).sum() + once[1].pow(2).sum() + once[2].pow(2).sum();
    EXPECT_TRUE(equal_bits(penalty, same_penalty));
    const auto twice = torch::autograd::grad({same_penalty}, leaves);
    const auto expect_sum = [&](const at::Tensor& found, size_t i) {
      ASSERT_TRUE(found.defined());
      EXPECT_TRUE(at::allclose(found, once[i] + twice[i], 1e-5, 1e-6));
    };
    expect_sum(context.get_gradients().find(w), 0);
    expect_sum(context.rpc_sync(a, &Layer::gradients).at(0), 1);
    expect_sum(context.rpc_sync(b, &Layer::gradients).at(0), 2);
  });
  program.worker("a", serve).worker("b", serve);
  EXPECT_TRUE(sim::holds_for_seeds(
      tries(8), [&](Seed seed) { Cluster(seed, program, {.faults = FaultLevel::hostile}).run(); }));
}

TEST(SmartPass, RootsMayLiveAnywhere) {
  // Goal: one pass over roots of several workers; one that starts elsewhere; one without a context
  // at its owner. Method: the three, beside the local model.
  Program program(layer_functions());
  program.worker("trainer", [](Worker& worker) {
    auto a = worker.remote<Layer>("a", 4, 1);
    auto b = worker.remote<Layer>("b", 4, 2);
    const AutogradContext context = worker.autograd_context();
    const auto first = context.remote(a, &Layer::scalar, numbers({3, 4}, 5));
    const auto second = context.remote(b, &Layer::scalar, numbers({3, 4}, 6));
    context.backward_at({first, second}, {.retain_graph = true});
    Layer same_a(4, 1);
    Layer same_b(4, 2);
    const at::Tensor one = same_a.scalar(numbers({3, 4}, 5));
    const at::Tensor two = same_b.scalar(numbers({3, 4}, 6));
    const auto of_a = local_gradients(one, {same_a.weight_, same_a.bias_});
    const auto of_b = local_gradients(two, {same_b.weight_, same_b.bias_});
    expect_gradients(context, a, of_a[0], of_a[1]);
    expect_gradients(context, b, of_b[0], of_b[1]);
    first.backward(context);
    expect_gradients(context, a, of_a[0] + of_a[0], of_a[1] + of_a[1]);
    expect_gradients(context, b, of_b[0], of_b[1]);

    const at::Tensor leaf = numbers({3}, 5).requires_grad_();
    const RRef<at::Tensor> mine = worker.rref((leaf * 3).sum());
    mine.backward();
    EXPECT_TRUE(equal_bits(leaf.grad(), at::full({3}, 3.F)));
    try {
      first.backward();
      ADD_FAILURE() << "a pass without context ran elsewhere";
    } catch (const RpcError& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_arguments);
    }
  });
  program.worker("a", serve).worker("b", serve);
  EXPECT_TRUE(sim::holds_for_seeds(10, [&](Seed seed) { Cluster(seed, program).run(); }));
}

}  // namespace
}  // namespace rehearsal::testing
