// Backward passes over simulated workers.
#include <gtest/gtest.h>

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

ClusterOptions calm() { return {.faults = FaultLevel::none}; }

// The error that `body` throws.
template <class Body>
Error error_of(Body body) {
  try {
    body();
  } catch (const RpcError& thrown) {
    return thrown.error();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

// Gradients of a layer at another worker, beside those of the same model here.
TEST(Pass, GradientsOfOneHopEqualTheLocalModelsBitForBit) {
  Program program(layer_functions());
  program.worker("trainer", [](Worker& worker) {
    const at::Tensor w = numbers({4, 4}, 7).requires_grad_();
    auto layer = worker.remote<Layer>("server", 4, 1);
    const AutogradContext context = worker.autograd_context();
    const at::Tensor input = at::matmul(numbers({3, 4}, 99), w);
    const at::Tensor loss = context.rpc_sync(layer, &Layer::forward, input).pow(2).sum();
    context.backward({loss});

    Layer same(4, 1);
    const at::Tensor local = same.forward(at::matmul(numbers({3, 4}, 99), w)).pow(2).sum();
    EXPECT_TRUE(equal_bits(loss, local));
    const auto expected = local_gradients(local, {w, same.weight_, same.bias_});
    EXPECT_TRUE(equal_bits(context.get_gradients().find(w), expected[0]));
    const auto remote = context.rpc_sync(layer, &Layer::gradients);
    EXPECT_TRUE(equal_bits(remote.at(0), expected[1]));
    EXPECT_TRUE(equal_bits(remote.at(1), expected[2]));
    EXPECT_FALSE(w.grad().defined());
  });
  program.worker("server", serve);
  EXPECT_TRUE(sim::holds_for_seeds(tries(8), [&](Seed seed) { Cluster(seed, program).run(); }));
}

// trainer → a → b → a and back: a's layer is used twice in one graph.
void train_around(Worker& worker) {
  const at::Tensor w = numbers({4, 4}, 7).requires_grad_();
  auto a = worker.remote<Layer>("a", 4, 1);
  auto b = worker.remote<Layer>("b", 4, 2);
  const AutogradContext context = worker.autograd_context();
  const at::Tensor input = at::matmul(numbers({3, 4}, 99), w);
  const at::Tensor first = context.rpc_sync(a, &Layer::forward_around, input, b);
  const at::Tensor second = context.rpc_sync(a, &Layer::forward, first);
  const at::Tensor loss = (first * second).sum();
  context.backward({loss});

  Layer same_a(4, 1);
  Layer same_b(4, 2);
  const at::Tensor local_input = at::matmul(numbers({3, 4}, 99), w);
  const at::Tensor local_first = same_a.forward(same_b.forward(same_a.forward(local_input)));
  const at::Tensor local = (local_first * same_a.forward(local_first)).sum();
  EXPECT_TRUE(equal_bits(loss, local));
  const auto expected =
      local_gradients(local, {w, same_b.weight_, same_b.bias_, same_a.weight_, same_a.bias_});
  EXPECT_TRUE(equal_bits(context.get_gradients().find(w), expected[0]));
  const auto of_b = context.rpc_sync(b, &Layer::gradients);
  EXPECT_TRUE(equal_bits(of_b.at(0), expected[1]));
  EXPECT_TRUE(equal_bits(of_b.at(1), expected[2]));
  const auto of_a = context.rpc_sync(a, &Layer::gradients);
  EXPECT_TRUE(at::allclose(of_a.at(0), expected[3]));
  EXPECT_TRUE(at::allclose(of_a.at(1), expected[4]));
}

TEST(Pass, FollowsAGraphThatReturnsToAWorkerUnderFaults) {
  Program program(layer_functions());
  program.worker("trainer", train_around).worker("a", serve).worker("b", serve);
  EXPECT_TRUE(sim::holds_for_seeds(tries(12), [&](Seed seed) {
    Cluster(seed, program, {.faults = FaultLevel::hostile}).run();
  }));
}

// The sums at a layer that several executions used have the same bits under every schedule.
TEST(Pass, SumsDoNotDependOnTheSchedule) {
  std::vector<at::Tensor> found;
  Program program(layer_functions());
  program.worker("trainer", [&](Worker& worker) {
    auto layer = worker.remote<Layer>("server", 4, 1);
    const AutogradContext context = worker.autograd_context();
    const at::Tensor w = numbers({4, 4}, 7).requires_grad_();
    std::vector<Future<at::Tensor>> results;
    for (int i = 0; i < 6; ++i)
      results.push_back(
          context.rpc_async(layer, &Layer::forward, at::matmul(numbers({3, 4}, 50 + i), w)));
    at::Tensor loss = at::zeros({});
    for (const auto& result : results) loss = loss + result.wait().pow(2).sum();
    context.backward({loss});
    found = context.rpc_sync(layer, &Layer::gradients);
    found.push_back(context.get_gradients().find(w));
  });
  program.worker("server", serve);
  Cluster(Seed{1}, program, {.faults = FaultLevel::hostile}).run();
  const std::vector<at::Tensor> first = found;
  EXPECT_TRUE(sim::holds_for_seeds(tries(12), [&](Seed seed) {
    Cluster(seed, program, {.faults = FaultLevel::hostile}).run();
    for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(equal_bits(found[i], first[i]));
  }));
}

TEST(Pass, FastNamesAResultThatNoRootDependsOn) {
  Program program(layer_functions());
  program.worker("trainer", [](Worker& worker) {
    auto layer = worker.remote<Layer>("server", 4, 1);
    const AutogradContext context = worker.autograd_context();
    const at::Tensor used = context.rpc_sync(layer, &Layer::forward, numbers({3, 4}, 5));
    const at::Tensor unused = context.rpc_sync(layer, &Layer::scalar, numbers({3, 4}, 6));
    const Error error = error_of(
        [&] { context.backward({used.sum()}, {.retain_graph = true, .mode = PassMode::fast}); });
    EXPECT_EQ(error.kind, ErrorKind::autograd);
    EXPECT_EQ(error.worker, "server");
    EXPECT_NE(error.text.find("the result of 'Layer.scalar'"), std::string::npos) << error.text;
    EXPECT_NE(error.text.find("'trainer'"), std::string::npos) << error.text;
    // Nothing was added anywhere, and with the missing root the pass succeeds.
    EXPECT_FALSE(context.rpc_sync(layer, &Layer::gradients).at(0).defined());
    context.backward({used.sum(), unused}, {.mode = PassMode::fast});
    EXPECT_TRUE(context.rpc_sync(layer, &Layer::gradients).at(0).defined());
  });
  program.worker("server", serve);
  coverage::Marks marks;
  ClusterOptions options;
  options.traces = {&marks};
  Cluster(Seed{1}, program, options).run();
  EXPECT_TRUE(marks.reached("a send function got no gradient"));
}

TEST(Pass, AHookThatThrowsFailsThePassEverywhere) {
  Program program(layer_functions());
  program.worker("trainer", [](Worker& worker) {
    auto a = worker.remote<Layer>("a", 4, 1);
    auto b = worker.remote<Layer>("b", 4, 2);
    b.rpc_sync(&Layer::add_throwing_hook);
    const AutogradContext context = worker.autograd_context();
    const at::Tensor loss =
        context.rpc_sync(a, &Layer::forward_through, numbers({3, 4}, 5), b).sum();
    const Error error = error_of([&] { context.backward({loss}); });
    EXPECT_EQ(error.kind, ErrorKind::remote_exception);
    EXPECT_EQ(error.worker, "b");
    EXPECT_NE(error.text.find("the hook of the weight failed"), std::string::npos) << error.text;
    EXPECT_FALSE(context.rpc_sync(a, &Layer::gradients).at(0).defined());
  });
  program.worker("a", serve).worker("b", serve);
  EXPECT_TRUE(sim::holds_for_seeds(tries(8), [&](Seed seed) { Cluster(seed, program).run(); }));
}

TEST(Pass, HooksOfRemoteParametersRun) {
  Program program(layer_functions());
  program.worker("trainer", [](Worker& worker) {
    auto layer = worker.remote<Layer>("server", 4, 1);
    layer.rpc_sync(&Layer::add_doubling_hook);
    const AutogradContext context = worker.autograd_context();
    context.backward({context.rpc_sync(layer, &Layer::scalar, numbers({3, 4}, 5))});
    Layer same(4, 1);
    const auto expected = local_gradients(same.scalar(numbers({3, 4}, 5)), {same.weight_});
    EXPECT_TRUE(equal_bits(context.rpc_sync(layer, &Layer::gradients).at(0), expected[0] * 2));
  });
  program.worker("server", serve);
  Cluster(Seed{1}, program).run();
}

TEST(Pass, ContextsThatInterleaveKeepTheirGradientsApart) {
  Program program(layer_functions());
  program.worker("server", serve);
  program.worker(
      "trainer",
      [](Worker& worker) {
        auto layer = worker.remote<Layer>("server", 4, 1);
        const AutogradContext first = worker.autograd_context();
        const AutogradContext second = worker.autograd_context();
        const at::Tensor one = first.rpc_sync(layer, &Layer::scalar, numbers({3, 4}, 5));
        const at::Tensor two = second.rpc_sync(layer, &Layer::scalar, numbers({3, 4}, 6));
        second.backward({two});
        EXPECT_FALSE(first.rpc_sync(layer, &Layer::gradients).at(0).defined());
        first.backward({one}, /*retain_graph=*/true);
        first.backward({one});  // Adds to what is there.
        Layer same(4, 1);
        const auto once = local_gradients(same.scalar(numbers({3, 4}, 5)), {same.weight_});
        const auto other = local_gradients(same.scalar(numbers({3, 4}, 6)), {same.weight_});
        EXPECT_TRUE(equal_bits(first.rpc_sync(layer, &Layer::gradients).at(0), once[0] + once[0]));
        EXPECT_TRUE(equal_bits(second.rpc_sync(layer, &Layer::gradients).at(0), other[0]));
      },
      Count{2});
  EXPECT_TRUE(sim::holds_for_seeds(tries(8), [&](Seed seed) { Cluster(seed, program).run(); }));
}

TEST(Pass, StartsAtARootOfAnotherWorker) {
  Program program(layer_functions());
  program.worker("trainer", [](Worker& worker) {
    auto layer = worker.remote<Layer>("server", 4, 1);
    const at::Tensor w = numbers({3, 4}, 5).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    const RRef<at::Tensor> root = context.remote(layer, &Layer::scalar, w * 2);
    root.backward(context);
    Layer same(4, 1);
    const auto expected = local_gradients(same.scalar(w * 2), {w, same.weight_});
    EXPECT_TRUE(equal_bits(context.get_gradients().find(w), expected[0]));
    EXPECT_TRUE(equal_bits(context.rpc_sync(layer, &Layer::gradients).at(0), expected[1]));
  });
  program.worker("server", serve);
  EXPECT_TRUE(sim::holds_for_seeds(tries(8), [&](Seed seed) { Cluster(seed, program).run(); }));
}

TEST(Pass, WrongRootsAndEndedContextsAreRefused) {
  Program program(layer_functions());
  program.worker("trainer", [](Worker& worker) {
    const AutogradContext context = worker.autograd_context();
    const at::Tensor w = numbers({3}, 5).requires_grad_();
    const auto refused = [&](const std::vector<at::Tensor>& roots) {
      return error_of([&] { context.backward(roots); }).text;
    };
    EXPECT_EQ(refused({}), "there are no roots");
    EXPECT_EQ(refused({at::ones({})}), "a root does not require gradients");
    EXPECT_EQ(refused({w}), "a root has more elements than one: add them up first");
    std::optional<AutogradContext> other(worker.autograd_context());
    auto layer = worker.remote<Layer>("server", 4, 1);
    const at::Tensor foreign = other->rpc_sync(layer, &Layer::scalar, numbers({3, 4}, 5));
    EXPECT_NE(refused({foreign}).find("another autograd context"), std::string::npos);
  });
  program.worker("server", serve);
  Cluster(Seed{1}, program, calm()).run();
}

// Passes are cut short by a deadline at any moment, with messages on their way, and run again in
// the same context: what one of them left behind is refused, and gradients are those of one pass.
TEST(Pass, RunsAgainAfterADeadlineAtAnyMoment) {
  coverage::Marks marks;
  uint64_t cut_short = 0;
  Program program(layer_functions());
  program.worker("trainer", [&](Worker& worker) {
    const at::Tensor w = numbers({4, 4}, 7).requires_grad_();
    auto a = worker.remote<Layer>("a", 4, 1);
    auto b = worker.remote<Layer>("b", 4, 2);
    const AutogradContext context = worker.autograd_context();
    at::Tensor loss = at::zeros({});
    for (int i = 0; i < 3; ++i) {
      const at::Tensor input = at::matmul(numbers({3, 4}, 90 + i), w);
      loss = loss + context.rpc_sync(a, &Layer::forward_around, input, b).sum();
    }
    auto deadline = std::chrono::microseconds(300);
    while (true) {
      try {
        context.backward({loss}, /*retain_graph=*/true, deadline);
        break;
      } catch (const RpcError& thrown) {
        if (thrown.kind() != ErrorKind::timeout) throw;
        ++cut_short;
        deadline += deadline / 2;
      }
    }
    Layer same_a(4, 1);
    Layer same_b(4, 2);
    at::Tensor local = at::zeros({});
    for (int i = 0; i < 3; ++i) {
      const at::Tensor input = at::matmul(numbers({3, 4}, 90 + i), w);
      local = local + same_a.forward(same_b.forward(same_a.forward(input))).sum();
    }
    const auto expected = local_gradients(local, {w, same_a.weight_, same_b.weight_});
    EXPECT_TRUE(at::allclose(context.get_gradients().find(w), expected[0]));
    EXPECT_TRUE(at::allclose(context.rpc_sync(a, &Layer::gradients).at(0), expected[1]));
    EXPECT_TRUE(at::allclose(context.rpc_sync(b, &Layer::gradients).at(0), expected[2]));
  });
  program.worker("a", serve).worker("b", serve);
  EXPECT_TRUE(sim::holds_for_seeds(tries(20), [&](Seed seed) {
    ClusterOptions options{.faults = FaultLevel::mild};
    options.traces = {&marks};
    Cluster(seed, program, options).run();
  }));
  EXPECT_GT(cut_short, 15u);
  for (const char* mark :
       {"a late message of a failed pass was refused", "an answer came for a pass that has failed",
        "a report came for a pass that has failed"})
    EXPECT_TRUE(marks.reached(mark)) << mark << "\n" << marks.text();
}

// A pass is cut short and its context ends at once: what is still on its way finds no context.
TEST(Pass, LateMessagesOfAnEndedContextAreRefused) {
  coverage::Marks marks;
  Program program(layer_functions());
  program.worker("trainer", [&](Worker& worker) {
    auto a = worker.remote<Layer>("a", 4, 1);
    auto b = worker.remote<Layer>("b", 4, 2);
    for (int i = 1; i < 9; ++i) {
      const AutogradContext context = worker.autograd_context();
      const at::Tensor loss =
          context.rpc_sync(a, &Layer::forward_around, numbers({3, 4}, 5), b).sum();
      try {
        context.backward({loss}, false, std::chrono::milliseconds(i));
      } catch (const RpcError& thrown) {
        if (thrown.kind() != ErrorKind::timeout) throw;
      }
    }
  });
  program.worker("a", serve).worker("b", serve);
  EXPECT_TRUE(sim::holds_for_seeds(tries(20), [&](Seed seed) {
    ClusterOptions options{.faults = FaultLevel::hostile};
    options.traces = {&marks};
    Cluster(seed, program, options).run();
  }));
  EXPECT_TRUE(marks.reached("a message of a pass came for a context that has ended"))
      << marks.text();
}

// The rule left out: a pass that has failed starts once more where its late gradients come.
TEST(Pass, ForgettingDeadEpochsIsFound) {
  Program program(layer_functions());
  program.worker("trainer", [](Worker& worker) {
    auto a = worker.remote<Layer>("a", 4, 1);
    auto b = worker.remote<Layer>("b", 4, 2);
    const AutogradContext context = worker.autograd_context();
    const at::Tensor loss =
        context.rpc_sync(a, &Layer::forward_around, numbers({3, 4}, 5), b).sum();
    for (int i = 1; i < 20; ++i) {
      try {
        context.backward({loss}, /*retain_graph=*/true, std::chrono::microseconds(400 * i));
      } catch (const RpcError& thrown) {
        if (thrown.kind() != ErrorKind::timeout) throw;
      }
    }
  });
  program.worker("a", serve).worker("b", serve);
  const auto fails = [&](uint64_t seeds, const std::vector<std::string>& mutants) {
    bool failed = false;
    for (uint64_t seed = 1; seed <= seeds && !failed; ++seed) {
      ClusterOptions options{.faults = FaultLevel::mild};
      options.adjust_node = [&](NodeOptions& node) { node.mutants = mutants; };
      Cluster cluster(Seed{seed}, program, options);
      failed = !cluster.try_run().ok;
    }
    return failed;
  };
  EXPECT_FALSE(fails(tries(15), {}));
  if (!kHasMutants) return;
  EXPECT_TRUE(fails(60, {"forget_dead_epochs"}));
}

// A crash at each third moment of a pass: whoever is left ends with an error that names the dead
// worker or with a whole pass, and nothing is left behind, which the cluster's oracles look at.
TEST(Pass, ACrashAtAnyMomentFailsThePassCleanly) {
  Program program(layer_functions());
  program.worker("trainer", train_around).worker("a", serve).worker("b", serve);
  Cluster whole(Seed{3}, program, {.faults = FaultLevel::mild});
  const auto& report = whole.run();
  uint64_t failed = 0;
  for (const uint32_t victim : {0u, 1u, 2u}) {
    const uint64_t events = report.workers.at(victim).decisions;
    ASSERT_GT(events, 20u);
    for (uint64_t decision = victim % every(3); decision < events; decision += every(3)) {
      ClusterOptions options{.faults = FaultLevel::mild};
      options.crash_points = {{WorkerId{victim}, decision}};
      Cluster cluster(Seed{3}, program, options);
      const auto& crashed = cluster.try_run();
      EXPECT_FALSE(crashed.failure.has_value())
          << "worker " << victim << " at " << decision << ": " << crashed.failure->oracle << " "
          << crashed.failure->object << " " << crashed.failure->message;
      if (crashed.workers.at(0).error) ++failed;
    }
  }
  EXPECT_GT(failed, 5u);
}

}  // namespace
}  // namespace rehearsal::testing
