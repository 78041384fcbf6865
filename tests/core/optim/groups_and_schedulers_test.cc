// Goal: groups of parameters with options of their own, which LibTorch's schedulers and the program
// change between steps, step as those of one process do. Method: both side by side, all bits.
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include "tests/core/optim/split_model.h"

namespace rehearsal::testing {
namespace {

using torch::optim::AdamOptions;
using torch::optim::OptimizerParamGroup;
using torch::optim::SGDOptions;

// Both optimizers, with weights in one group and biases in another.
template <class Optimizer, class Options>
struct Pair {
  Pair(Worker& worker, const Options& of_weights, const Options& defaults)
      : model(worker),
        optimizer(worker,
                  {ParameterGroup(model.weights(), of_weights), ParameterGroup(model.biases())},
                  defaults),
        same({OptimizerParamGroup(twin.weights(), std::make_unique<Options>(of_weights)),
              OptimizerParamGroup(twin.biases())},
             defaults) {}

  void train(Worker& worker, const std::function<void(int step, float loss)>& between) {
    for (int step = 0; step < 6; ++step) {
      const AutogradContext context = worker.autograd_context();
      model.backward(context, 30 + step);
      optimizer.step(context);
      same.zero_grad();
      const at::Tensor loss = twin.loss(30 + step);
      loss.backward();
      same.step();
      between(step, loss.item<float>());
      expect_equal(model.values(), twin.parameters(), "after step " + std::to_string(step));
    }
  }

  SplitModel model;
  TwinModel twin;
  DistributedOptimizer optimizer;
  Optimizer same;
};

using SgdPair = Pair<torch::optim::SGD, SGDOptions>;

TEST(OptimizerGroups, EachHasOptionsOfItsOwn) {
  on_split_clusters([](Worker& worker) {
    SgdPair sgd(worker, SGDOptions(0.1).momentum(0.9), SGDOptions(0.05).weight_decay(0.01));
    sgd.train(worker, [](int, float) {});
    Pair<torch::optim::Adam, AdamOptions> adam(worker, AdamOptions(1e-2).betas({0.8, 0.99}),
                                               AdamOptions(1e-3).amsgrad(true));
    adam.train(worker, [](int, float) {});
  });
}

TEST(OptimizerGroups, AStepSchedulerOfLibtorchChangesTheRates) {
  on_split_clusters([](Worker& worker) {
    SgdPair pair(worker, SGDOptions(0.1), SGDOptions(0.05));
    torch::optim::StepLR here(pair.optimizer.groups(), 2, 0.5);
    torch::optim::StepLR there(pair.same, 2, 0.5);
    pair.train(worker, [&](int, float) {
      here.step();
      there.step();
    });
    EXPECT_EQ(pair.optimizer.groups().param_groups()[0].options().get_lr(), 0.1 * 0.5 * 0.5);
  });
}

TEST(OptimizerGroups, APlateauSchedulerOfLibtorchChangesTheRates) {
  on_split_clusters([](Worker& worker) {
    SgdPair pair(worker, SGDOptions(0.1), SGDOptions(0.05));
    const auto mode = torch::optim::ReduceLROnPlateauScheduler::min;
    torch::optim::ReduceLROnPlateauScheduler here(pair.optimizer.groups(), mode, 0.5, 0);
    torch::optim::ReduceLROnPlateauScheduler there(pair.same, mode, 0.5, 0);
    pair.train(worker, [&](int, float loss) {
      here.step(loss + 1000);  // Grows now and then: the rate falls.
      there.step(loss + 1000);
    });
    EXPECT_LT(pair.optimizer.groups().param_groups()[0].options().get_lr(), 0.1);
  });
}

TEST(OptimizerGroups, AnyOptionMayBeChangedByHand) {
  on_split_clusters([](Worker& worker) {
    SgdPair pair(worker, SGDOptions(0.1).momentum(0.5), SGDOptions(0.05));
    const auto change = [](torch::optim::Optimizer& optimizer, int step) {
      auto& group = optimizer.param_groups().at(static_cast<size_t>(step % 2));
      auto& options = static_cast<SGDOptions&>(group.options());
      options.momentum(options.momentum() + 0.1).weight_decay(0.01 * step);
    };
    pair.train(worker, [&](int step, float) {
      change(pair.optimizer.groups(), step);
      change(pair.same, step);
    });
  });
}

TEST(OptimizerGroups, OptionsOutliveAMoveOfTheOptimizer) {
  on_split_clusters([](Worker& worker) {
    SgdPair pair(worker, SGDOptions(0.1), SGDOptions(0.05));
    torch::optim::Optimizer& groups = pair.optimizer.groups();
    DistributedOptimizer moved = std::move(pair.optimizer);
    EXPECT_EQ(&moved.groups(), &groups);
    pair.optimizer = std::move(moved);
    groups.param_groups()[1].options().set_lr(0.5);
    pair.same.param_groups()[1].options().set_lr(0.5);
    pair.train(worker, [](int, float) {});
  });
}

TEST(OptimizerGroups, WhatDoesNotFitIsRefused) {
  on_split_clusters([](Worker& worker) {
    const SplitModel model(worker);
    // Options of two kinds.
    EXPECT_TRUE(contains(text_thrown<std::invalid_argument>([&] {
                           const DistributedOptimizer optimizer(
                               worker, {ParameterGroup(model.weights(), AdamOptions(0.1))},
                               SGDOptions(0.1));
                         }),
                         "the options of a group are those of another optimizer"));
    // No parameters.
    EXPECT_EQ(text_thrown<std::invalid_argument>([&] {
                const DistributedOptimizer optimizer(
                    worker, std::vector<ParameterGroup>{ParameterGroup({})}, SGDOptions(0.1));
              }),
              "an optimizer without parameters");
    // A parameter in two groups: its owner says so at the step.
    const AutogradContext context = worker.autograd_context();
    model.backward(context, 30);
    DistributedOptimizer twice(
        worker, {ParameterGroup(model.weights()), ParameterGroup({model.weights().at(2)})},
        SGDOptions(0.1));
    const std::string text = text_thrown<RpcError>([&] { twice.step(context); });
    EXPECT_TRUE(contains(text, "'trainer' done, 'near' done, 'far' failed")) << text;
    EXPECT_TRUE(contains(text, "a parameter is in two groups of an optimizer")) << text;
    // The groups take no steps, and no groups.
    EXPECT_TRUE(contains(text_thrown<std::logic_error>([&] { twice.groups().step(); }),
                         "it steps itself, with a context"));
    twice.groups().add_param_group(OptimizerParamGroup(std::vector<at::Tensor>()));
    EXPECT_EQ(text_thrown<std::logic_error>([&] { twice.step(context); }),
              "a DistributedOptimizer has the groups that it was made with");
  });
}

}  // namespace
}  // namespace rehearsal::testing
