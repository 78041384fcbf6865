// Goal: an optimizer that a program wrote itself steps at several workers as in one process, and
// what it throws is told. Method: Adamax and Rprop beside the same in one process, all bits.
#include "tests/core/optim/own_optimizers.h"

#include <gtest/gtest.h>
#include <torch/optim/schedulers/step_lr.h>

#include "tests/core/optim/split_model.h"

namespace rehearsal::testing {
namespace {

using own_optimizers::Adamax;
using own_optimizers::AdamaxOptions;
using own_optimizers::register_own_optimizers;
using own_optimizers::Rprop;
using own_optimizers::RpropOptions;
using own_optimizers::Unmakeable;
using torch::optim::OptimizerParamGroup;

FunctionRegistry own_functions() {
  FunctionRegistry registry = layer_functions();
  register_own_optimizers(registry);
  return registry;
}

template <class Made, class Options>
void compare(Worker& worker, const Options& of_weights, const Options& defaults) {
  const SplitModel model(worker);
  TwinModel twin;
  const DistributedOptimizer optimizer = make_distributed_optimizer<Made>(
      worker,
      std::vector<ParameterGroup>{ParameterGroup(model.weights(), of_weights),
                                  ParameterGroup(model.biases())},
      defaults);
  Made same({OptimizerParamGroup(twin.weights(), std::make_unique<Options>(of_weights)),
             OptimizerParamGroup(twin.biases())},
            defaults);
  torch::optim::StepLR here(optimizer.groups(), 1, 0.5);
  torch::optim::StepLR there(same, 1, 0.5);
  for (int step = 0; step < 4; ++step) {
    const AutogradContext context = worker.autograd_context();
    model.backward(context, 30 + step);
    optimizer.step(context);
    same.zero_grad();
    twin.loss(30 + step).backward();
    same.step();
    here.step();
    there.step();
    expect_equal(model.values(), twin.parameters(), "after step " + std::to_string(step));
  }
}

TEST(OwnOptimizer, StepsAsInOneProcess) {
  on_split_clusters(
      [](Worker& worker) {
        compare<Adamax>(worker, AdamaxOptions(0.05), AdamaxOptions(0.01));
        compare<Rprop>(worker, RpropOptions(0.05), RpropOptions(0.01));
      },
      own_functions());
}

TEST(OwnOptimizer, AConstructorThatThrowsIsToldByTheFirstStepWithItsOwners) {
  on_split_clusters(
      [](Worker& worker) {
        const SplitModel model(worker);
        const DistributedOptimizer optimizer =
            make_distributed_optimizer<Unmakeable>(worker, model.biases(), RpropOptions());
        const AutogradContext context = worker.autograd_context();
        model.backward(context, 30);
        for (int again = 0; again < 2; ++again) {
          const std::string text = text_thrown<RpcError>([&] { optimizer.step(context); });
          EXPECT_TRUE(contains(text, "the optimizer's step: 'near' failed")) << text;
          EXPECT_TRUE(contains(text, "'far' failed")) << text;
          EXPECT_TRUE(contains(text, "Error creating optimizer.")) << text;
        }
        EXPECT_THROW(optimizer.retry_step(context), RpcError);
        expect_equal(model.values(), copies(TwinModel().parameters()));
      },
      own_functions());
}

TEST(OwnOptimizer, OneThatThrewHalfwayDoesNotRepeatItsStep) {
  on_split_clusters(
      [](Worker& worker) {
        const SplitModel model(worker);
        RpropOptions fails(0.05);
        fails.fails_at = 1;
        const DistributedOptimizer optimizer = make_distributed_optimizer<Rprop>(
            worker,
            std::vector<ParameterGroup>{ParameterGroup(model.weights()),
                                        ParameterGroup({model.biases().at(1)}, fails)},
            RpropOptions(0.05));
        const AutogradContext context = worker.autograd_context();
        model.backward(context, 30);
        const std::string text = text_thrown<RpcError>([&] { optimizer.step(context); });
        EXPECT_TRUE(contains(text, "'trainer' done, 'near' done, 'far' failed")) << text;
        EXPECT_TRUE(contains(text,
                             "the optimizer is out of order; some of its parameters may have "
                             "changed"))
            << text;
        const auto after = model.values();
        const std::string again = text_thrown<RpcError>([&] { optimizer.retry_step(context); });
        EXPECT_TRUE(contains(again, "'trainer' done, 'near' done, 'far' failed")) << again;
        EXPECT_TRUE(contains(again, "the optimizer threw halfway")) << again;
        expect_equal(model.values(), after);
      },
      own_functions());
}

TEST(OwnOptimizer, OneThatIsNotRegisteredIsRefused) {
  on_split_clusters([](Worker& worker) {
    const SplitModel model(worker);
    try {
      const DistributedOptimizer optimizer =
          make_distributed_optimizer<Rprop>(worker, model.parameters(), RpropOptions());
      ADD_FAILURE() << "nothing was thrown";
    } catch (const RpcError& thrown) {
      EXPECT_EQ(thrown.kind(), ErrorKind::unknown_function) << thrown.what();
    }
  });
}

TEST(OwnOptimizer, ItsOptionsAreNotTakenForLibtorchs) {
  on_split_clusters([](Worker& worker) {
    const SplitModel model(worker);
    EXPECT_TRUE(contains(text_thrown<std::invalid_argument>([&] {
                           DistributedOptimizer(worker, model.parameters(), RpropOptions());
                         }),
                         "make_distributed_optimizer"));
  });
}

}  // namespace
}  // namespace rehearsal::testing
