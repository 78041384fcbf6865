// Goal: a step with the gradients of several contexts is that of one process that calls backward as
// often, and a failed accumulation leaves nothing. Method: both side by side, all bits.
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>

#include "tests/core/optim/split_model.h"

namespace rehearsal::testing {
namespace {

using torch::optim::Adam;
using torch::optim::AdamOptions;

// Both optimizers, with all parameters.
struct AdamPair {
  explicit AdamPair(Worker& worker)
      : model(worker),
        optimizer(worker, model.parameters(), AdamOptions(1e-2)),
        same(twin.parameters(), AdamOptions(1e-2)) {}
  void accumulate(Worker& worker, int64_t seed) {
    const AutogradContext context = worker.autograd_context();
    model.backward(context, seed);
    optimizer.accumulate(context);
    twin.loss(seed).backward();
  }
  void expect_same() { expect_equal(model.values(), twin.parameters()); }

  SplitModel model;
  TwinModel twin;
  DistributedOptimizer optimizer;
  Adam same;
};

TEST(GradientAccumulation, AStepAddsItsOwnContextToTheSum) {
  on_split_clusters([](Worker& worker) {
    AdamPair pair(worker);
    for (int step = 0; step < 3; ++step) {
      pair.same.zero_grad();
      pair.accumulate(worker, 30 + step);
      const AutogradContext context = worker.autograd_context();
      pair.model.backward(context, 40 + step);
      pair.optimizer.step(context);
      pair.twin.loss(40 + step).backward();
      pair.same.step();
      pair.expect_same();
    }
    EXPECT_FALSE(pair.model.w().grad().defined());
  });
}

TEST(GradientAccumulation, TheSumOfThreeIsClippedAndStepsAlone) {
  on_split_clusters([](Worker& worker) {
    AdamPair pair(worker);
    for (int step = 0; step < 2; ++step) {
      pair.same.zero_grad();
      for (int term = 0; term < 3; ++term) pair.accumulate(worker, 30 + 10 * term + step);
      const double norm = pair.optimizer.clip_grad_norm(0.5);
      EXPECT_EQ(norm, torch::nn::utils::clip_grad_norm_(pair.twin.parameters(), 0.5));
      pair.optimizer.clip_grad_value(0.1);
      torch::nn::utils::clip_grad_value_(pair.twin.parameters(), 0.1);
      pair.optimizer.step();
      pair.same.step();
      pair.expect_same();
    }
  });
}

TEST(GradientAccumulation, ATermIsWhatTheContextHeldThen) {
  on_split_clusters([](Worker& worker) {
    AdamPair pair(worker);
    const AutogradContext context = worker.autograd_context();
    pair.model.backward(context, 30);
    pair.optimizer.accumulate(context);
    pair.optimizer.drop_accumulated();
    pair.optimizer.accumulate(context);
    // Both change the context.
    pair.model.backward(context, 31);
    DistributedOptimizer(worker, pair.model.parameters(), AdamOptions(1e-2))
        .clip_grad_value(context, 0);
    pair.optimizer.step();
    pair.twin.loss(30).backward();
    pair.same.step();
    pair.expect_same();
  });
}

TEST(GradientAccumulation, WhatFailedAtOneOwnerCountsAtNone) {
  // Goal: no half of a term. Method: a context that only the first owner has gradients in.
  on_split_clusters([](Worker& worker) {
    AdamPair pair(worker);
    pair.accumulate(worker, 30);
    const AutogradContext partial = worker.autograd_context();
    partial.backward({pair.model.w().sum()});
    const std::string text = text_thrown<RpcError>([&] { pair.optimizer.accumulate(partial); });
    EXPECT_TRUE(contains(text, "the accumulation of gradients: 'trainer' done, 'near' failed"))
        << text;
    EXPECT_TRUE(contains(text, "none of the parameters of 'far' has a gradient")) << text;
    pair.accumulate(worker, 31);
    EXPECT_THROW(pair.optimizer.accumulate(partial), RpcError);
    pair.optimizer.step();
    pair.same.step();
    pair.expect_same();
  });
}

TEST(GradientAccumulation, AStepEndsItAlsoIfItFails) {
  on_split_clusters([](Worker& worker) {
    AdamPair pair(worker);
    AdamPair other(worker);
    pair.accumulate(worker, 30);
    const AutogradContext nothing = worker.autograd_context();
    EXPECT_THROW(pair.optimizer.step(nothing), RpcError);
    expect_equal(pair.model.values(), other.model.values());
    // The next one uses its own context only.
    const AutogradContext context = worker.autograd_context();
    pair.model.backward(context, 31);
    pair.optimizer.step(context);
    pair.same.zero_grad();
    pair.twin.loss(31).backward();
    pair.same.step();
    pair.expect_same();
  });
}

TEST(GradientAccumulation, WhatItCannotMeanIsRefused) {
  on_split_clusters([](Worker& worker) {
    AdamPair pair(worker);
    const std::string none = "there are no accumulated gradients: give a context";
    EXPECT_EQ(text_thrown<std::logic_error>([&] { pair.optimizer.step(); }), none);
    EXPECT_EQ(text_thrown<std::logic_error>([&] { (void)pair.optimizer.clip_grad_norm(1); }), none);
    pair.accumulate(worker, 30);
    const AutogradContext context = worker.autograd_context();
    pair.model.backward(context, 31);
    EXPECT_TRUE(
        contains(text_thrown<std::logic_error>([&] { pair.optimizer.clip_grad_value(context, 1); }),
                 "gradients were accumulated: accumulate this context's too"));
    pair.optimizer.drop_accumulated();
    pair.optimizer.clip_grad_value(context, 1);
    EXPECT_EQ(text_thrown<std::logic_error>([&] { pair.optimizer.step(); }), none);
  });
}

}  // namespace
}  // namespace rehearsal::testing
