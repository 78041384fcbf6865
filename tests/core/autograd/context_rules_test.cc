// Rules of contexts and passes, a small program each; with the rule left out it fails.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>
#include <vector>

#include "core/base/mutants.h"
#include "sim/cluster.h"
#include "tests/core/autograd/remote_model.h"

namespace rehearsal::testing {
namespace {

using sim::Cluster;
using sim::ClusterOptions;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Doubles it, but answers later.
Future<at::Tensor> double_later(CallContext& context, const at::Tensor& input) {
  return context.after(milliseconds(1)).then([doubled = input * 2](Unit) { return doubled; });
}

at::Tensor double_now(const at::Tensor& input) { return input * 2; }

// Doubles it when its caller, whose loss ends the wait, is lost.
at::Tensor double_for_the_lost(CallContext& context, const at::Tensor& input) {
  const Shield shield = context.shielded(seconds(300));
  context.sleep(seconds(200));
  return input * 2;
}

Unit pass_on(CallContext& context, const at::Tensor& input) {
  (void)context.rpc_sync("server", &double_for_the_lost, input * 1);
  return {};
}

// The first, whose gradient it passes on; the second gets none.
struct IgnoreSecond : torch::autograd::Function<IgnoreSecond> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& first,
                            const at::Tensor&) {
    return first.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    return {gradients.at(0), at::Tensor()};
  }
};

class ContextRules : public ::testing::Test {
 protected:
  static ClusterOptions without(const std::string& rule) {
    ClusterOptions options;
    options.adjust_node = [rule](NodeOptions& node) {
      if (!rule.empty()) node.mutants = {rule};
      node.rpc_timeout = seconds(10);
    };
    return options;
  }

  static Program train_later() {
    FunctionRegistry registry;
    registry.function("double_later", &double_later);
    Program program(std::move(registry));
    program.worker("server").worker("trainer", [](Worker& worker) {
      const at::Tensor w = at::ones({3}).requires_grad_();
      const AutogradContext context = worker.autograd_context();
      context.backward({context.rpc_sync("server", &double_later, w * 1).sum()});
      if (!equal_bits(context.get_gradients().find(w), at::full({3}, 2.0F)))
        throw std::logic_error("a wrong gradient");
    });
    return program;
  }

  static Program train_on_nothing() {
    Program program(layer_functions());
    program.worker("server").worker("trainer", [](Worker& worker) {
      const at::Tensor w = at::ones({4}).requires_grad_();
      auto layer = worker.remote<Layer>("server", 4, 1);
      const AutogradContext context = worker.autograd_context();
      const at::Tensor ignored = context.rpc_sync(layer, &Layer::forward, numbers({4}, 5));
      context.backward({IgnoreSecond::apply(w, ignored).sum()}, {.mode = PassMode::fast});
      if (!equal_bits(context.get_gradients().find(w), at::ones({4})))
        throw std::logic_error("a wrong gradient");
    });
    return program;
  }

  // Whether the server is rid of a context that ended while its call, a large one, was on its way.
  static bool forgets_the_ended(const std::string& left_out) {
    bool is_answered = false;
    FunctionRegistry registry;
    registry.function("double_now", &double_now);
    Program program(std::move(registry));
    program.worker("server").worker("trainer", [&is_answered](Worker& worker) {
      Future<at::Tensor> answer;
      {
        const AutogradContext context = worker.autograd_context();
        const at::Tensor w = at::ones({1 << 18}).requires_grad_();
        answer = context.rpc_async("server", &double_now, w * 1);
      }
      (void)answer.result();
      worker.sleep(seconds(1));
      is_answered = true;
      worker.sleep(seconds(100));
    });
    Cluster cluster(Seed{1}, program, without(left_out));
    cluster.network().share_bandwidth(10'000'000);
    EXPECT_TRUE(cluster.run_until([&] { return is_answered; }));
    return cluster.node("server").census().contexts == 0;
  }

  // Whether the server is rid of the context of a trainer that has crashed, while others go on.
  static bool forgets_the_dead(const std::string& left_out) {
    bool is_working = true;
    Program program(layer_functions());
    program.worker("server")
        .worker("trainer",
                [](Worker& worker) {
                  auto layer = worker.remote<Layer>("server", 4, 1);
                  const AutogradContext context = worker.autograd_context();
                  (void)context.rpc_sync(layer, &Layer::forward, numbers({4}, 5));
                  worker.sleep(seconds(1'000));
                })
        .worker("busy", [&is_working](Worker& worker) {
          worker.sleep(seconds(500));
          is_working = false;
        });
    Cluster cluster(Seed{1}, program, without(left_out));
    EXPECT_TRUE(cluster.run_until([&] { return cluster.node("server").census().contexts == 1; }));
    cluster.crash("trainer");
    return cluster.run_until([&] { return cluster.node("server").census().contexts == 0; }) &&
           is_working;
  }
};

TEST_F(ContextRules, AnAnswerToALostCallerCountsForNobody) {
  // Goal: what is recorded for a worker is not kept for one that is lost. Method: a function that
  // is shielded outlasts its caller; the cluster's invariants are looked at after each event.
  FunctionRegistry registry;
  registry.function("double_for_the_lost", &double_for_the_lost);
  registry.function("pass_on", &pass_on);
  Program program(std::move(registry));
  program.worker("server").worker("lost").worker("trainer", [](Worker& worker) {
    const at::Tensor w = at::ones({3}).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    const auto failed = context.rpc_async("lost", &pass_on, w * 1).result();
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().kind, ErrorKind::peer_lost);
    worker.sleep(seconds(500));
  });
  ClusterOptions options = without("");
  options.adjust_node = [](NodeOptions& node) { node.rpc_timeout = seconds(1'000); };
  Cluster cluster(Seed{1}, program, options);
  EXPECT_TRUE(cluster.run_until([&] { return cluster.node("server").census().contexts == 1; }));
  cluster.crash("lost");
  const sim::RunReport report = cluster.try_run();
  EXPECT_TRUE(report.ok) << describe_failure(report);
}

TEST_F(ContextRules, AnAnswerThatComesLaterIsRecorded) {
  const Program program = train_later();
  Cluster(Seed{1}, program, without("")).run();
  if (!kHasMutants) return;
  EXPECT_FALSE(Cluster(Seed{1}, program, without("context_lost_in_async")).try_run().ok);
}

TEST_F(ContextRules, AnUndefinedGradientIsSentToo) {
  // Goal: a pass goes on behind a tensor that gets no gradient. Method: the loss ignores a result.
  const Program program = train_on_nothing();
  Cluster(Seed{1}, program, without("")).run();
  if (!kHasMutants) return;
  EXPECT_FALSE(Cluster(Seed{1}, program, without("undefined_gradient_not_sent")).try_run().ok);
}

TEST_F(ContextRules, TheirEndDoesNotOvertakeTheirCalls) {
  EXPECT_TRUE(forgets_the_ended(""));
  if (!kHasMutants) return;
  EXPECT_FALSE(forgets_the_ended("release_overtakes_calls"));
}

TEST_F(ContextRules, TheLossOfTheirCreatorEndsThem) {
  EXPECT_TRUE(forgets_the_dead(""));
  if (!kHasMutants) return;
  EXPECT_FALSE(forgets_the_dead("lost_creator_keeps_contexts"));
}

}  // namespace
}  // namespace rehearsal::testing
