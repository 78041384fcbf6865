// Steps over parameters at several workers equal those of LibTorch's optimizer in one process.
#include "core/api/distributed_optimizer.h"

#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "core/optim/libtorch_kinds.h"
#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/core/autograd/remote_model.h"

namespace rehearsal::testing {
namespace {

using sim::Cluster;

void serve(Worker&) {}

// Trains a layer at "server" and a matrix here, and the same model in one process, side by side.
template <class Optimizer, class Options>
void compare_training(Worker& worker, const Options& options, double clip) {
  at::Tensor w = numbers({4, 4}, 7).requires_grad_();
  auto layer = worker.remote<Layer>("server", 4, 1);
  auto parameters = layer.rpc_sync(&Layer::parameters);
  parameters.insert(parameters.begin() + 1, worker.rref(w));
  parameters.push_back(worker.rref(w));  // A second name changes nothing.
  const DistributedOptimizer optimizer(worker, parameters, options);

  at::Tensor same_w = numbers({4, 4}, 7).requires_grad_();
  Layer same(4, 1);
  const std::vector<at::Tensor> same_parameters = {same.weight_, same_w, same.bias_};
  Optimizer same_optimizer(same_parameters, options);

  for (int step = 0; step < 4; ++step) {
    const at::Tensor input = numbers({3, 4}, 30 + step);
    const AutogradContext context = worker.autograd_context();
    const at::Tensor loss =
        context.rpc_sync(layer, &Layer::forward, at::matmul(input, w)).pow(2).sum();
    context.backward({loss});
    same_optimizer.zero_grad();
    const at::Tensor local = same.forward(at::matmul(input, same_w)).pow(2).sum();
    EXPECT_TRUE(equal_bits(loss, local)) << "step " << step;
    local.backward();
    if (clip > 0) {
      const double norm = optimizer.clip_grad_norm(context, clip);
      EXPECT_EQ(norm, torch::nn::utils::clip_grad_norm_(same_parameters, clip));
    }
    optimizer.step(context);
    same_optimizer.step();
  }
  const auto values = layer.rpc_sync(&Layer::values);
  EXPECT_TRUE(equal_bits(values.at(0), same.weight_));
  EXPECT_TRUE(equal_bits(values.at(1), same.bias_));
  EXPECT_TRUE(equal_bits(w, same_w));
  EXPECT_FALSE(w.grad().defined());
}

template <class Optimizer, class Options>
void expect_same_training(const Options& options, double clip = 0) {
  Program program(layer_functions());
  program.worker("trainer",
                 [&](Worker& worker) { compare_training<Optimizer>(worker, options, clip); });
  program.worker("server", serve);
  EXPECT_TRUE(sim::holds_for_seeds(
      5, [&](Seed seed) { Cluster(seed, program, {.faults = sim::FaultLevel::hostile}).run(); }));
}

TEST(DistributedOptimizer, SgdEqualsTheLocalOne) {
  expect_same_training<torch::optim::SGD>(
      torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01).nesterov(true));
}

TEST(DistributedOptimizer, SgdWithClippedGradientsEqualsTheLocalOne) {
  expect_same_training<torch::optim::SGD>(torch::optim::SGDOptions(0.1), 0.25);
}

TEST(DistributedOptimizer, AdamEqualsTheLocalOne) {
  expect_same_training<torch::optim::Adam>(
      torch::optim::AdamOptions(1e-2).betas({0.8, 0.99}).amsgrad(true));
}

TEST(DistributedOptimizer, AdamWEqualsTheLocalOne) {
  expect_same_training<torch::optim::AdamW>(torch::optim::AdamWOptions(1e-2));
}

TEST(DistributedOptimizer, AdagradEqualsTheLocalOne) {
  expect_same_training<torch::optim::Adagrad>(
      torch::optim::AdagradOptions(1e-2).initial_accumulator_value(0.1));
}

TEST(DistributedOptimizer, RmspropEqualsTheLocalOne) {
  expect_same_training<torch::optim::RMSprop>(torch::optim::RMSpropOptions(1e-2).centered(true));
}

TEST(DistributedOptimizer, AParameterWithoutAGradientIsUntouched) {
  // Goal: no gradient of an earlier step is used again. Method: one that never had a gradient, and
  // then has one in the second of three steps.
  Program program(layer_functions());
  program.worker("trainer", [](Worker& worker) {
    auto layer = worker.remote<Layer>("server", 4, 1);
    const at::Tensor unused = numbers({4}, 3).requires_grad_();
    auto parameters = layer.rpc_sync(&Layer::parameters);
    parameters.push_back(worker.rref(unused));
    DistributedOptimizer optimizer(worker, parameters, torch::optim::AdamOptions(0.1));
    optimizer.allow_owners_without_gradients();
    const AutogradContext context = worker.autograd_context();
    context.backward({context.rpc_sync(layer, &Layer::scalar, numbers({3, 4}, 5))});
    optimizer.step(context);
    EXPECT_TRUE(equal_bits(unused, numbers({4}, 3)));
    EXPECT_FALSE(equal_bits(layer.rpc_sync(&Layer::values).at(0), numbers({4, 4}, 1)));
    const AutogradContext used = worker.autograd_context();
    used.backward({unused.pow(2).sum()});
    optimizer.step(used);
    const at::Tensor changed = unused.detach().clone();
    EXPECT_FALSE(equal_bits(changed, numbers({4}, 3)));
    const AutogradContext last = worker.autograd_context();
    last.backward({last.rpc_sync(layer, &Layer::scalar, numbers({3, 4}, 6))});
    optimizer.step(last);
    EXPECT_TRUE(equal_bits(unused, changed));
  });
  program.worker("server", serve);
  Cluster(Seed{1}, program).run();
}

TEST(DistributedOptimizer, AnOwnerWithoutAnyGradientSaysSoUnlessThatIsAllowed) {
  // Goal: gradients that got lost are told at the step, by the owner's name. Method: a pass that
  // reaches one of two owners; then none; the other steps all the same.
  Program program(layer_functions());
  program.worker("trainer", [](Worker& worker) {
    auto layer = worker.remote<Layer>("server", 4, 1);
    const at::Tensor w = numbers({3, 4}, 3).requires_grad_();
    auto parameters = layer.rpc_sync(&Layer::parameters);
    parameters.push_back(worker.rref(w));
    DistributedOptimizer optimizer(worker, parameters, torch::optim::SGDOptions(0.1));
    const AutogradContext context = worker.autograd_context();
    context.backward({(w * 2).sum()});
    const auto told = [&] {
      try {
        optimizer.step(context);
      } catch (const RpcError& thrown) {
        EXPECT_EQ(thrown.kind(), ErrorKind::autograd);
        EXPECT_EQ(thrown.error().worker, "server");
        return thrown.error().text;
      }
      return std::string();
    };
    const std::string text = told();
    EXPECT_NE(text.find("none of the parameters of 'server' has a gradient in autograd context " +
                        to_string(context.id())),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("allow_owners_without_gradients()"), std::string::npos) << text;
    EXPECT_NE(text.find("'trainer' done"), std::string::npos) << text;
    EXPECT_TRUE(equal_bits(w, numbers({3, 4}, 3).add(at::full({3, 4}, 2.0F), -0.1)));
    optimizer.allow_owners_without_gradients();
    EXPECT_EQ(told(), "");
    EXPECT_TRUE(equal_bits(layer.rpc_sync(&Layer::values).at(0), numbers({4, 4}, 1)));
    optimizer.allow_owners_without_gradients(false);
    EXPECT_NE(told(), "");
  });
  program.worker("server", serve);
  Cluster(Seed{1}, program).run();
}

TEST(DistributedOptimizer, AFailureTellsEveryOwnersOutcome) {
  Program program(layer_functions());
  program.worker("trainer", [](Worker& worker) {
    auto layer = worker.remote<Layer>("server", 4, 1);
    const at::Tensor w = numbers({4, 4}, 7).requires_grad_();
    auto parameters = layer.rpc_sync(&Layer::parameters);
    const RRef<at::Tensor> computed = worker.rref(at::Tensor(w * 2));
    parameters.push_back(computed);
    const DistributedOptimizer optimizer(worker, parameters, torch::optim::SGDOptions(0.1));
    const AutogradContext context = worker.autograd_context();
    context.backward({context.rpc_sync(layer, &Layer::scalar, numbers({3, 4}, 5))});
    try {
      optimizer.step(context);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const RpcError& thrown) {
      const std::string& text = thrown.error().text;
      EXPECT_NE(text.find("'server' done"), std::string::npos) << text;
      EXPECT_NE(text.find("'trainer' failed"), std::string::npos) << text;
      EXPECT_NE(text.find("the result of a computation"), std::string::npos) << text;
    }
  });
  program.worker("server", serve);
  Cluster(Seed{1}, program).run();
}

TEST(DistributedOptimizer, LbfgsIsRefusedWithAReason) {
  try {
    (void)libtorch_kind_of(torch::optim::LBFGSOptions(0.1));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::invalid_argument& refused) {
    EXPECT_NE(std::string(refused.what()).find("LBFGS cannot be distributed"), std::string::npos);
  }
}

}  // namespace
}  // namespace rehearsal::testing
