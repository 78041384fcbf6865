#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/api/distributed_checkpoint.h"
#include "core/api/distributed_grad_scaler.h"
#include "core/api/distributed_optimizer.h"
#include "core/api/program.h"
#include "core/api/remote_module.h"
#include "sim/cluster.h"

// A training of a few steps, with everything that a checkpoint can hold: modules with buffers and
// random numbers at two owners, a head here, two optimizers, a scheduler, a scaler, values.
namespace rehearsal::testing {

// A layer that draws random numbers and has buffers.
struct NoisyLayerImpl : torch::nn::Module {
  NoisyLayerImpl(int64_t in, int64_t out)
      : linear(register_module("linear", torch::nn::Linear(in, out))),
        norm(register_module("norm", torch::nn::BatchNorm1d(out))) {}
  at::Tensor forward(const at::Tensor& input) {
    return torch::dropout(torch::tanh(norm(linear(input))), 0.25, is_training());
  }
  std::vector<at::Tensor> state() const {
    std::vector<at::Tensor> all;
    for (const at::Tensor& tensor : parameters()) all.push_back(tensor.detach().clone());
    for (const at::Tensor& tensor : buffers()) all.push_back(tensor.detach().clone());
    return all;
  }
  torch::nn::Linear linear;
  torch::nn::BatchNorm1d norm;
};
TORCH_MODULE(NoisyLayer);

struct TrainingPlan {
  int64_t steps = 6;
  int64_t save_every = 2;
  std::string first = "first";  // the owners of the two layers
  std::string second = "second";
  DistributedCheckpoint::Options checkpoint;
};

// The state that a training ended with, and where it had begun.
struct TrainingEnd {
  std::vector<at::Tensor> tensors;
  int64_t position = 0;
  double rate = 0;
  double scale = 0;
  int64_t resumed_at = 0;
};

inline FunctionRegistry training_registry() {
  FunctionRegistry registry;
  register_module<NoisyLayer, int64_t, int64_t>(registry, "NoisyLayer")
      .method("state", &NoisyLayerImpl::state);
  return registry;
}

// A main that trains and puts its end into `end`.
inline Program::Main training_main(TrainingPlan plan, TrainingEnd& end) {
  return [plan, &end](Worker& worker) {
    const RemoteModule<NoisyLayer> first(worker, RemoteDevice(plan.first), 5, 4);
    const RemoteModule<NoisyLayer> second(worker, RemoteDevice(plan.second), 4, 4);
    const auto head = std::make_shared<torch::nn::LinearImpl>(4, 1);
    std::vector<RRef<at::Tensor>> parameters = first.remote_parameters();
    for (const RRef<at::Tensor>& parameter : second.remote_parameters())
      parameters.push_back(parameter);
    DistributedOptimizer optimizer(worker, parameters, torch::optim::AdamOptions(0.01));
    torch::optim::SGD at_home(head->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    torch::optim::StepLR scheduler(optimizer.groups(), 2, 0.5);
    DistributedGradScaler scaler({.init_scale = 4, .growth_interval = 3});
    int64_t position = 0;

    DistributedCheckpoint checkpoint(worker, "small", plan.checkpoint);
    checkpoint.module("first", first)
        .module("second", second)
        .module("head", head)
        .optimizer("adam", optimizer)
        .optimizer("sgd", at_home)
        .scheduler("rate", scheduler)
        .scaler("scaler", scaler)
        .value("position", position);
    int64_t step = checkpoint.resume();
    end.resumed_at = step;
    while (step < plan.steps) {
      const AutogradContext context = worker.autograd_context();
      {
        const auto recording = context.record();
        const at::Tensor input = torch::randn({6, 5}) + position;
        const at::Tensor out = head->forward(second.forward(first.forward(input)));
        context.backward({scaler.scale(out.pow(2).mean())});
      }
      scaler.step(optimizer, context);
      for (const at::Tensor& parameter : head->parameters())
        parameter.mutable_grad() = context.get_gradients().find(parameter) / scaler.get_scale();
      at_home.step();
      scaler.update();
      scheduler.step();
      position += 3;
      if (++step % plan.save_every == 0) checkpoint.save(step);
    }
    checkpoint.wait();
    end.tensors = first.rpc_sync(&NoisyLayerImpl::state);
    for (const at::Tensor& tensor : second.rpc_sync(&NoisyLayerImpl::state))
      end.tensors.push_back(tensor);
    for (const at::Tensor& tensor : head->parameters())
      end.tensors.push_back(tensor.detach().clone());
    end.tensors.push_back(torch::rand({3}));
    end.position = position;
    end.rate = optimizer.groups().param_groups()[0].options().get_lr();
    end.scale = scaler.get_scale();
  };
}

// "trainer" trains layers at "first" and "second".
inline Program training_program(const TrainingPlan& plan, TrainingEnd& end) {
  Program program(training_registry());
  program.worker("trainer", training_main(plan, end)).recovering();
  program.worker("first").recovering().worker("second").recovering();
  return program;
}

// The first thing that differs; empty: nothing does.
[[nodiscard]] inline std::string difference(const TrainingEnd& a, const TrainingEnd& b) {
  if (a.tensors.size() != b.tensors.size() || a.tensors.empty()) return "the numbers of tensors";
  for (size_t i = 0; i < a.tensors.size(); ++i)
    if (!a.tensors[i].equal(b.tensors[i])) return "tensor " + std::to_string(i);
  if (a.position != b.position) return "the positions";
  if (a.rate != b.rate) return "the rates";
  if (a.scale != b.scale) return "the scales";
  return {};
}

}  // namespace rehearsal::testing
