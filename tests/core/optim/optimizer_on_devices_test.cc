// Goal: an optimizer changes parameters on devices, which compute later, in the order in which the
// program uses them: no wait is missing, and the bits are those of one process without devices.
// Method: parameters of the trainer and of another worker, on two devices; the oracle "device
// waits"; each part that uses what an optimizer has changed.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <vector>

#include "core/api/call_context.h"
#include "core/api/distributed_optimizer.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/effort.h"

namespace rehearsal::testing {
namespace {

using torch::optim::Adam;
using torch::optim::AdamOptions;

at::Tensor first_weights() { return at::arange(1, 9).to(at::kFloat) / 8; }
at::Tensor input(int64_t step) { return at::arange(step, step + 8).to(at::kFloat) / 16; }

// Multiplies by its weights, on a device of its owner.
class Scale {
 public:
  void place(CallContext& call, int device) {
    weights_ = first_weights().to(call.device(device)).requires_grad_();
  }
  at::Tensor forward(const at::Tensor& x) const { return x.to(weights_.device()) * weights_; }
  RRef<at::Tensor> parameter(CallContext& call) const { return call.rref(weights_); }
  at::Tensor value() const { return weights_.detach().cpu(); }

 private:
  at::Tensor weights_;
};

// Weights here, on device 0, and at "owner", on its device 1, which sends to device 0 of ours.
struct Model {
  explicit Model(Worker& worker) : scale(worker.remote<Scale>("owner")) {
    weights = first_weights().to(worker.device(0)).requires_grad_();
    scale.rpc_sync(&Scale::place, 1);
    parameters = {worker.rref(weights), scale.rpc_sync(&Scale::parameter)};
  }
  void backward(const AutogradContext& context, int64_t step) const {
    const auto recording = context.record();
    const at::Tensor x = input(step).to(weights.device());
    context.backward({(scale.rpc_sync(&Scale::forward, x * weights) * weights).sum()});
  }
  void expect_equal(const std::vector<at::Tensor>& others) const {
    EXPECT_TRUE(at::equal(weights.detach().cpu(), others[0].detach()));
    EXPECT_TRUE(at::equal(scale.rpc_sync(&Scale::value), others[1].detach()));
  }

  RRef<Scale> scale;
  at::Tensor weights;
  std::vector<RRef<at::Tensor>> parameters;
};

// The same in one process.
struct Twin {
  void backward(int64_t step) {
    ((input(step) * weights[0]) * weights[1] * weights[0]).sum().backward();
  }

  std::vector<at::Tensor> weights = {first_weights().requires_grad_(),
                                     first_weights().requires_grad_()};
};

void on_clusters_with_devices(Program::Main trainer) {
  FunctionRegistry registry;
  registry.type<Scale>("Scale")
      .constructor<>()
      .method("place", &Scale::place)
      .method("forward", &Scale::forward)
      .method("parameter", &Scale::parameter)
      .method("value", &Scale::value);
  Program program(std::move(registry));
  program.worker("trainer", std::move(trainer))
      .device_map("owner", {{0, 1}, {1, 0}})
      .worker("owner");
  EXPECT_TRUE(sim::holds_for_seeds(tries(14), [&](Seed seed) {
    const auto faults = seed.value % 2 == 0 ? sim::FaultLevel::mild : sim::FaultLevel::hostile;
    sim::Cluster cluster(seed, program, {.faults = faults, .devices = 2});
    cluster.run();
  }));
}

TEST(OptimizerOnDevices, StepsBetweenTheUsesOfItsParameters) {
  on_clusters_with_devices([](Worker& worker) {
    const Model model(worker);
    const DistributedOptimizer optimizer(worker, model.parameters, AdamOptions(1e-2));
    Twin twin;
    Adam same(twin.weights, AdamOptions(1e-2));
    for (int64_t step = 0; step < 3; ++step) {
      const AutogradContext context = worker.autograd_context();
      model.backward(context, step);
      const double norm = optimizer.clip_grad_norm(context, 0.5);
      optimizer.step(context);
      same.zero_grad();
      twin.backward(step);
      EXPECT_EQ(norm, torch::nn::utils::clip_grad_norm_(twin.weights, 0.5));
      same.step();
      model.expect_equal(twin.weights);
    }
  });
}

TEST(OptimizerOnDevices, AddsTheGradientsOfContexts) {
  on_clusters_with_devices([](Worker& worker) {
    const Model model(worker);
    const DistributedOptimizer optimizer(worker, model.parameters, AdamOptions(1e-2));
    Twin twin;
    Adam same(twin.weights, AdamOptions(1e-2));
    for (const int64_t step : {1, 2}) {
      const AutogradContext context = worker.autograd_context();
      model.backward(context, step);
      optimizer.accumulate(context);
      twin.backward(step);
    }
    optimizer.step();
    same.step();
    model.expect_equal(twin.weights);
  });
}

TEST(OptimizerOnDevices, ChangesGradientsBeforeOthersReadThem) {
  on_clusters_with_devices([](Worker& worker) {
    const Model model(worker);
    // Each has streams of its own at each owner.
    const DistributedOptimizer clipping(worker, model.parameters, AdamOptions(1e-2));
    const DistributedOptimizer stepping(worker, model.parameters, AdamOptions(1e-2));
    Twin twin;
    Adam same(twin.weights, AdamOptions(1e-2));
    const AutogradContext context = worker.autograd_context();
    model.backward(context, 3);
    clipping.clip_grad_value(context, 0.25);
    const LeafGradients here = context.get_gradients();
    stepping.step(context);
    twin.backward(3);
    torch::nn::utils::clip_grad_value_(twin.weights, 0.25);
    EXPECT_TRUE(at::equal(here.find(model.weights).cpu(), twin.weights[0].grad()));
    same.step();
    model.expect_equal(twin.weights);
  });
}

}  // namespace
}  // namespace rehearsal::testing
