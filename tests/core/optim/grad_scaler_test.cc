// Goal: the scale of a loss grows and shrinks as PyTorch's, a step with an overflow at one owner is
// left out at all, and others have the bits of one process. Method: both side by side.
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/sgd.h>

#include <limits>

#include "core/api/distributed_grad_scaler.h"
#include "tests/core/optim/split_model.h"

namespace rehearsal::testing {
namespace {

using torch::optim::SGD;
using torch::optim::SGDOptions;

const SGDOptions kOptions = SGDOptions(0.1).momentum(0.9);
const DistributedGradScaler::Options kScaler = {.init_scale = 24, .growth_interval = 2};

// In one process, as the scaler does it.
void unscale(const TwinModel& twin, double scale) {
  const at::Tensor factor = at::full({1}, 1.0, at::kDouble).div(scale).to(at::kFloat);
  for (const at::Tensor& parameter : twin.parameters()) parameter.grad().mul_(factor);
}

// A gradient of this matrix's that is too large once it is scaled, at this worker alone.
at::Tensor overflow(const SplitModel& model) {
  return (model.w() * std::numeric_limits<float>::max()).sum();
}

TEST(DistributedGradScaler, StepsAsInOneProcessWithAScaleThatChanges) {
  on_split_clusters([](Worker& worker) {
    const SplitModel model(worker);
    TwinModel twin;
    const DistributedOptimizer optimizer(worker, model.parameters(), kOptions);
    SGD same(twin.parameters(), kOptions);
    DistributedGradScaler scaler(kScaler);
    // Two good steps double it; an overflow halves it, and starts the count anew.
    const std::vector<double> scales = {24, 24, 48, 24, 24, 48, 24, 12};
    const std::vector<bool> overflows = {false, false, true, false, false, true, true};
    for (size_t step = 0; step < overflows.size(); ++step) {
      const double scale = scaler.get_scale();
      EXPECT_EQ(scale, scales[step]) << "step " << step;
      const auto seed = static_cast<int64_t>(30 + step);
      const AutogradContext context = worker.autograd_context();
      {
        const auto recording = context.record();
        at::Tensor root = scaler.scale(model.loss(seed));
        if (overflows[step]) root = root + scaler.scale(overflow(model));
        context.backward({root});
      }
      const auto before = model.values();
      if (step % 2 == 0) scaler.unscale_(optimizer, context);
      EXPECT_EQ(scaler.step(optimizer, context), !overflows[step]);
      scaler.update();
      if (overflows[step]) {
        expect_equal(model.values(), before, "after an overflow");
        continue;
      }
      same.zero_grad();
      (twin.loss(seed) * scale).backward();
      unscale(twin, scale);
      same.step();
      expect_equal(model.values(), twin.parameters(), "after step " + std::to_string(step));
    }
    EXPECT_EQ(scaler.get_scale(), scales.back());
    DistributedGradScaler loaded;
    loaded.load(scaler.state());
    EXPECT_EQ(loaded.get_scale(), 12);
  });
}

TEST(DistributedGradScaler, UnscalesBeforeClippingAndSumsOfContexts) {
  on_split_clusters([](Worker& worker) {
    const SplitModel model(worker);
    TwinModel twin;
    const DistributedOptimizer optimizer(worker, model.parameters(), kOptions);
    SGD same(twin.parameters(), kOptions);
    DistributedGradScaler scaler(kScaler);
    for (int term = 0; term < 2; ++term) {
      const AutogradContext context = worker.autograd_context();
      model.backward(context, 30 + term, scaler.get_scale());
      optimizer.accumulate(context);
      (twin.loss(30 + term) * scaler.get_scale()).backward();
    }
    scaler.unscale_(optimizer);
    unscale(twin, scaler.get_scale());
    EXPECT_EQ(optimizer.clip_grad_norm(0.25),
              torch::nn::utils::clip_grad_norm_(twin.parameters(), 0.25));
    EXPECT_TRUE(scaler.step(optimizer));
    same.step();
    scaler.update();
    expect_equal(model.values(), twin.parameters());
  });
}

TEST(DistributedGradScaler, UnscalesAndBoundsWhatSeveralPassesHaveAddedUp) {
  // Goal: all that changes the gradients of a context does, also where they are a sum.
  on_split_clusters([](Worker& worker) {
    const SplitModel model(worker);
    TwinModel twin;
    const DistributedOptimizer optimizer(worker, model.parameters(), kOptions);
    SGD same(twin.parameters(), kOptions);
    DistributedGradScaler scaler(kScaler);
    const AutogradContext context = worker.autograd_context();
    for (int pass = 0; pass < 3; ++pass) {
      model.backward(context, 30 + pass, scaler.get_scale());
      (twin.loss(30 + pass) * scaler.get_scale()).backward();
    }
    scaler.unscale_(optimizer, context);
    unscale(twin, scaler.get_scale());
    EXPECT_EQ(optimizer.clip_grad_norm(context, 0.25),
              torch::nn::utils::clip_grad_norm_(twin.parameters(), 0.25));
    optimizer.clip_grad_value(context, 0.05);
    torch::nn::utils::clip_grad_value_(twin.parameters(), 0.05);
    EXPECT_TRUE(equal_bits(context.get_gradients().find(model.w()), twin.weights()[0].grad()));
    // A later pass adds to them.
    model.backward(context, 40);
    twin.loss(40).backward();
    EXPECT_TRUE(scaler.step(optimizer, context));
    same.step();
    expect_equal(model.values(), twin.parameters());
  });
}

TEST(DistributedGradScaler, WhatFailedIsCalledAgainAndDoneOnce) {
  // Every call has so little time that many fail, before and after they are done.
  int failures = 0;
  on_split_clusters([&failures](Worker& worker) {
    const SplitModel model(worker);
    TwinModel twin;
    const DistributedOptimizer optimizer(worker, model.parameters(), kOptions);
    SGD same(twin.parameters(), kOptions);
    DistributedGradScaler scaler(kScaler);
    const auto until_done = [&](const std::function<void()>& body) {
      for (;;) try {
          return body();
        } catch (const RpcError&) {
          if (++failures > 20000) throw;
          worker.sleep(std::chrono::milliseconds(300));
        }
    };
    const Duration time = round_trip(worker, model);
    for (int step = 0; step < 3; ++step) {
      const AutogradContext context(worker.with_timeout(time));
      const double scale = scaler.get_scale();
      model.backward(context, 30 + step, scale);
      until_done([&] { scaler.unscale_(optimizer, context); });
      until_done([&] { EXPECT_TRUE(scaler.step(optimizer, context)); });
      scaler.update();
      same.zero_grad();
      (twin.loss(30 + step) * scale).backward();
      unscale(twin, scale);
      same.step();
      expect_equal(model.values(), twin.parameters(), "after step " + std::to_string(step));
    }
  });
  EXPECT_GT(failures, 20);
}

TEST(DistributedGradScaler, CallsOutOfOrderAreRefused) {
  on_split_clusters([](Worker& worker) {
    const SplitModel model(worker);
    const DistributedOptimizer optimizer(worker, model.parameters(), kOptions);
    DistributedGradScaler scaler(kScaler);
    EXPECT_EQ(text_thrown<std::logic_error>([&] { scaler.update(); }),
              "no gradients were looked at since the last update");
    const AutogradContext context = worker.autograd_context();
    model.backward(context, 30, scaler.get_scale());
    scaler.unscale_(optimizer, context);
    EXPECT_EQ(text_thrown<std::logic_error>([&] { scaler.unscale_(optimizer, context); }),
              "unscale_ was called for this optimizer since the last update");
    EXPECT_TRUE(scaler.step(optimizer, context));
    EXPECT_EQ(text_thrown<std::logic_error>([&] { scaler.unscale_(optimizer, context); }),
              "unscale_ was called after step");
    EXPECT_EQ(text_thrown<std::logic_error>([&] { (void)scaler.step(optimizer, context); }),
              "step was called for this optimizer since the last update");
    DistributedGradScaler off({.enabled = false});
    EXPECT_EQ(off.get_scale(), 1);
    EXPECT_TRUE(off.step(optimizer, context));
    EXPECT_THROW(DistributedGradScaler({.growth_factor = 1}), std::invalid_argument);
    EXPECT_THROW(DistributedGradScaler({.backoff_factor = 1}), std::invalid_argument);
  });
}

}  // namespace
}  // namespace rehearsal::testing
