// Goal: a step over weights at two other workers is that of one process, for every optimizer, and
// what goes wrong at an owner is told with its name and leaves nothing. Method: the reference's
// model of two matrices, at four workers at once, with weights that a hand computes; an optimizer
// whose constructor throws at the owners.
#include <torch/optim.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/sgd.h>

#include <memory>
#include <string>
#include <vector>

#include "core/api/distributed_optimizer.h"
#include "tests/core/optim/own_optimizers.h"
#include "tests/effort.h"
#include "tests/reference/autograd.h"

namespace rehearsal::reference::optimizer_steps_test {
namespace {

using own_optimizers::Adamax;
using own_optimizers::AdamaxOptions;
using own_optimizers::Rprop;
using own_optimizers::RpropOptions;
using own_optimizers::Unmakeable;

// One weight; its forward is a product.
class Matrix {
 public:
  at::Tensor forward(const at::Tensor& input) { return at::matmul(weight_, input); }
  RRef<at::Tensor> parameter(CallContext& call) { return call.rref(weight_); }
  at::Tensor value() { return weight_.detach().clone(); }
  const at::Tensor& weight() const { return weight_; }

 private:
  const at::Tensor weight_ = matrix_a().requires_grad_();
};

FunctionRegistry functions() {
  FunctionRegistry registry;
  own_optimizers::register_own_optimizers(registry);
  registry.type<Matrix>("Matrix")
      .constructor<>()
      .method("forward", &Matrix::forward)
      .method("parameter", &Matrix::parameter)
      .method("value", &Matrix::value);
  return registry;
}

at::Tensor input() { return at::tensor({1, 0, 2, 0, 1, 1, 2, 1, 0}, at::kDouble).reshape({3, 3}); }

// The model of one worker: two weights on the next two, which nobody else uses.
struct Model {
  explicit Model(Worker& on) : worker(on) {
    first = worker.remote<Matrix>(after(worker, 1));
    second = worker.remote<Matrix>(after(worker, 2));
    parameters = {first.rpc_sync(&Matrix::parameter), second.rpc_sync(&Matrix::parameter)};
  }
  // A pass, and its loss.
  double backward(const AutogradContext& context) const {
    const auto recording = context.record();
    const at::Tensor inner = worker.rpc_sync(first, &Matrix::forward, input());
    const at::Tensor outer = worker.rpc_sync(second, &Matrix::forward, inner);
    const at::Tensor loss = (outer + matrix_b()).sum();
    context.backward({loss});
    return loss.item<double>();
  }
  std::vector<at::Tensor> values() const {
    return {first.rpc_sync(&Matrix::value), second.rpc_sync(&Matrix::value)};
  }

  Worker& worker;
  RRef<Matrix> first;
  RRef<Matrix> second;
  std::vector<RRef<at::Tensor>> parameters;
};

at::Tensor nine(const std::vector<double>& numbers) {
  return at::tensor(numbers, at::kDouble).reshape({3, 3});
}

void expect_step(const Model& model, const DistributedOptimizer& optimizer,
                 torch::optim::Optimizer& same, const std::vector<at::Tensor>& twins,
                 const std::vector<at::Tensor>& by_hand) {
  const AutogradContext context = model.worker.autograd_context();
  EXPECT_NEAR(model.backward(context), 23.94, 1e-9);
  optimizer.step(context);
  (at::matmul(twins[1], at::matmul(twins[0], input())) + matrix_b()).sum().backward();
  same.step();
  const auto values = model.values();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(rehearsal::reference::same(values[i], twins[i].detach())) << values[i];
    EXPECT_TRUE(close(values[i], by_hand[i])) << values[i] << by_hand[i];
    EXPECT_FALSE(at::equal(values[i], matrix_a()));
  }
}

// With one of LibTorch's optimizers.
template <class Optimizer, class Options>
void step_once(Worker& worker, const Options& options, const std::vector<at::Tensor>& by_hand) {
  const Model model(worker);
  const Matrix first, second;
  const std::vector<at::Tensor> twins = {first.weight(), second.weight()};
  const DistributedOptimizer optimizer(worker, model.parameters, options);
  Optimizer same(twins, options);
  expect_step(model, optimizer, same, twins, by_hand);
}

// With one of the test's own.
template <class Optimizer, class Options>
void step_once_with_own(Worker& worker, const Options& options,
                        const std::vector<at::Tensor>& by_hand) {
  const Model model(worker);
  const Matrix first, second;
  const std::vector<at::Tensor> twins = {first.weight(), second.weight()};
  const DistributedOptimizer optimizer =
      make_distributed_optimizer<Optimizer>(worker, model.parameters, options);
  Optimizer same({torch::optim::OptimizerParamGroup(twins)}, options);
  expect_step(model, optimizer, same, twins, by_hand);
}

// Rows: dist_optimizer_test::DistOptimizerTest.test_dist_optim
TEST(ReferenceOptimizer, AStepOfEveryOptimizerIsThatOfOneProcess) {
  const auto both = [](const at::Tensor& value) { return std::vector<at::Tensor>{value, value}; };
  in_both_worlds(
      everywhere(functions(),
                 [both](Worker& worker) {
                   using namespace torch::optim;
                   const at::Tensor a = matrix_a();
                   step_once<SGD>(worker, SGDOptions(0.05),
                                  {nine({-.08, .08, .12, .175, .35, .375, .43, .62, .63}),
                                   nine({.02, 0, -.02, .32, .3, .28, .62, .6, .58})});
                   step_once<SGD>(
                       worker, SGDOptions(1e-3).momentum(1).weight_decay(1).nesterov(true),
                       {nine({.0926, .1948, .2922, .3902, .493, .5898, .6878, .7912, .8874}),
                        nine({.0966, .1916, .2866, .396, .491, .586, .6954, .7904, .8854})});
                   step_once<Adam>(worker, AdamOptions(1e-2), both(a - .01));
                   step_once<RMSprop>(worker, RMSpropOptions(0.05), both(a - .5));
                   step_once<AdamW>(worker, AdamWOptions(0.05), both(a * .9995 - .05));
                   step_once<Adagrad>(worker, AdagradOptions(0.05), both(a - .05));
                   step_once_with_own<Adamax>(worker, AdamaxOptions(0.05), both(a - .05));
                   step_once_with_own<Rprop>(worker, RpropOptions(0.05), both(a - .05));
                 }),
      {.seeds = tries(15)});
}

void expect_owners_failure(const Error& error, const std::string& text,
                           const std::vector<std::string>& owners) {
  EXPECT_EQ(error.kind, ErrorKind::remote_exception) << to_string(error);
  for (const std::string& owner : owners)
    EXPECT_TRUE(contains(error.text, "'" + owner + "' failed")) << error.text;
  EXPECT_TRUE(contains(error.text, text)) << error.text;
}

// Rows: dist_optimizer_test::DistOptimizerTest.test_dist_optim_exception_on_constructor
TEST(ReferenceOptimizer, AConstructorThatThrowsIsToldByTheFirstStepAndLeavesNothing) {
  // A leak of any owner's part or reference would fail its worker at the shutdown.
  in_both_worlds(
      everywhere(
          functions(),
          [](Worker& worker) {
            const Model model(worker);
            const std::vector<std::string> owners = {after(worker, 1), after(worker, 2)};
            const AutogradContext context = worker.autograd_context();
            model.backward(context);
            const DistributedOptimizer own =
                make_distributed_optimizer<Unmakeable>(worker, model.parameters, RpropOptions());
            for (int again = 0; again < 2; ++again)
              expect_owners_failure(error_of([&] { own.step(context); }),
                                    "Error creating optimizer.", owners);
            const DistributedOptimizer libtorchs(worker, model.parameters,
                                                 torch::optim::SGDOptions(-1));
            expect_owners_failure(error_of([&] { libtorchs.step(context); }),
                                  "Invalid learning rate: -1", owners);
            for (const at::Tensor& value : model.values())
              EXPECT_TRUE(at::equal(value, matrix_a()));
            // The context and the parameters are as good as before.
            DistributedOptimizer(worker, model.parameters, torch::optim::SGDOptions(0.05))
                .step(context);
            EXPECT_TRUE(close(model.values()[1], nine({.02, 0, -.02, .32, .3, .28, .62, .6, .58})));
          }),
      {.seeds = tries(15)});
}

// The rows' like, for what throws in a step.
TEST(ReferenceOptimizer, AStepThatThrowsAtOneOwnerIsToldWithItsName) {
  in_both_worlds(
      everywhere(
          functions(),
          [](Worker& worker) {
            const Model model(worker);
            const AutogradContext context = worker.autograd_context();
            model.backward(context);
            RpropOptions fails(0.05);
            fails.fails_at = 1;
            const DistributedOptimizer optimizer = make_distributed_optimizer<Rprop>(
                worker,
                std::vector<ParameterGroup>{ParameterGroup({model.parameters[0]}),
                                            ParameterGroup({model.parameters[1]}, fails)},
                RpropOptions(0.05));
            const Error error = error_of([&] { optimizer.step(context); });
            expect_owners_failure(error, "the optimizer is out of order", {after(worker, 2)});
            EXPECT_TRUE(contains(error.text, "'" + after(worker, 1) + "' done")) << error.text;
            EXPECT_TRUE(close(model.values()[0], matrix_a() - .05));
            optimizer.step(context);  // The next one is another.
          }),
      {.seeds = tries(15)});
}

}  // namespace
}  // namespace rehearsal::reference::optimizer_steps_test
