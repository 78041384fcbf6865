// Mixed precision over several workers: layers that compute in half or bfloat16, whose activations
// and gradients travel so, with parameters in float and a scale for the loss; beside one process.
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <string>
#include <vector>

#include "core/api/distributed_grad_scaler.h"
#include "tests/core/optim/split_model.h"

namespace rehearsal::testing {
namespace {

using torch::optim::SGD;
using torch::optim::SGDOptions;

// As torch.autocast("cpu", dtype) of Python.
class Autocast {
 public:
  explicit Autocast(at::ScalarType type)
      : was_enabled_(at::autocast::is_autocast_enabled(at::kCPU)),
        type_before_(at::autocast::get_autocast_dtype(at::kCPU)) {
    at::autocast::set_autocast_dtype(at::kCPU, type);
    at::autocast::set_autocast_enabled(at::kCPU, true);
  }
  ~Autocast() {
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, was_enabled_);
    at::autocast::set_autocast_dtype(at::kCPU, type_before_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const bool was_enabled_;
  const at::ScalarType type_before_;
};

class MixedLayer {
 public:
  MixedLayer(int64_t width, int64_t seed, int64_t type)
      : type_(static_cast<at::ScalarType>(type)),
        weight_(numbers({width, width}, seed).requires_grad_()) {}

  at::Tensor forward(const at::Tensor& input) {
    const Autocast autocast(type_);
    return at::tanh(at::matmul(input, weight_));
  }
  RRef<at::Tensor> parameter(CallContext& call) { return call.rref(weight_); }
  at::Tensor value() { return weight_.detach(); }

  const at::ScalarType type_;
  at::Tensor weight_;
};

FunctionRegistry mixed_functions() {
  FunctionRegistry registry;
  registry.type<MixedLayer>("MixedLayer")
      .constructor<int64_t, int64_t, int64_t>()
      .method("forward", &MixedLayer::forward)
      .method("parameter", &MixedLayer::parameter)
      .method("value", &MixedLayer::value);
  return registry;
}

bool all_finite(const std::vector<at::Tensor>& parameters) {
  for (const at::Tensor& parameter : parameters)
    if (!at::isfinite(parameter.grad()).all().item<bool>()) return false;
  return true;
}

// Trains at two owners and in one process; how many steps were left out.
int train_mixed(Worker& worker, at::ScalarType type, int64_t steps) {
  const SGDOptions options = SGDOptions(0.05).momentum(0.9);
  const auto number = static_cast<int64_t>(type);
  auto near = worker.remote<MixedLayer>("near", 4, 1, number);
  auto far = worker.remote<MixedLayer>("far", 4, 2, number);
  const DistributedOptimizer optimizer(
      worker, {near.rpc_sync(&MixedLayer::parameter), far.rpc_sync(&MixedLayer::parameter)},
      options);
  DistributedGradScaler scaler({.init_scale = 1 << 22, .growth_interval = 3});
  MixedLayer same_near(4, 1, number);
  MixedLayer same_far(4, 2, number);
  const std::vector<at::Tensor> parameters = {same_near.weight_, same_far.weight_};
  SGD same(parameters, options);
  int left_out = 0;
  for (int64_t step = 0; step < steps; ++step) {
    const at::Tensor input = numbers({3, 4}, 40 + step);
    const double scale = scaler.get_scale();
    const AutogradContext context = worker.autograd_context();
    {
      const auto recording = context.record();
      const at::Tensor between = near.rpc_sync(&MixedLayer::forward, input);
      EXPECT_EQ(between.scalar_type(), type);
      const at::Tensor out = far.rpc_sync(&MixedLayer::forward, between);
      context.backward({scaler.scale(out.to(at::kFloat).pow(2).sum())});
    }
    const bool stepped = scaler.step(optimizer, context);
    scaler.update();

    same.zero_grad();
    const at::Tensor out = same_far.forward(same_near.forward(input));
    (out.to(at::kFloat).pow(2).sum() * scale).backward();
    EXPECT_EQ(stepped, all_finite(parameters)) << "step " << step << ", scale " << scale;
    left_out += stepped ? 0 : 1;
    if (stepped) {
      const at::Tensor factor = at::full({1}, 1.0, at::kDouble).div(scale).to(at::kFloat);
      for (const at::Tensor& parameter : parameters) parameter.grad().mul_(factor);
      same.step();
    }
    expect_equal({near.rpc_sync(&MixedLayer::value), far.rpc_sync(&MixedLayer::value)},
                 copies(parameters), "after step " + std::to_string(step));
  }
  return left_out;
}

TEST(MixedPrecision, HalfOverflowsUntilTheScaleFitsAndStepsAsInOneProcess) {
  // Goal: an overflow in half at any owner leaves the step out at all, and the scale falls until
  // gradients fit. Method: a scale that is too large for half at first.
  on_split_clusters(
      [](Worker& worker) {
        const int left_out = train_mixed(worker, at::kHalf, 14);
        EXPECT_GT(left_out, 2);
        EXPECT_LT(left_out, 12);
      },
      mixed_functions());
}

TEST(MixedPrecision, Bfloat16HasTheRangeOfFloat) {
  // Goal: no step is left out by the same scale. Method: as before.
  on_split_clusters([](Worker& worker) { EXPECT_EQ(train_mixed(worker, at::kBFloat16, 6), 0); },
                    mixed_functions());
}

}  // namespace
}  // namespace rehearsal::testing
