// Remote modules as layers of a local one.
#include "core/api/remote_layer.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/utils.h>

#include <sstream>

#include "core/api/distributed_optimizer.h"
#include "tests/core/nn/remote_net.h"

namespace rehearsal::testing {
namespace {

using NetLayer = RemoteLayer<Net>;

torch::nn::Linear middle_layer() {
  torch::nn::Linear linear(kWidth, kWidth);
  const torch::NoGradGuard no_grad;
  linear->weight.copy_(numbers({kWidth, kWidth}, 300));
  linear->bias.copy_(numbers({kWidth}, 400));
  return linear;
}

// Remote, local, remote; and the same all here.
void train_sequential(Worker& worker) {
  const RemoteModule<Net> first(worker, "a", kWidth, 5);
  const RemoteModule<Net> last(worker, "b", kWidth, 50);
  torch::nn::Sequential model(std::make_shared<NetLayer>(first), middle_layer(),
                              std::make_shared<NetLayer>(last));
  auto parameters = first.remote_parameters();
  for (const torch::Tensor& parameter : model->parameters())
    parameters.push_back(worker.rref(parameter));
  for (const auto& parameter : last.remote_parameters()) parameters.push_back(parameter);
  const DistributedOptimizer optimizer(worker, parameters, torch::optim::AdamOptions(0.05));

  torch::nn::Sequential same(std::make_shared<Net>(kWidth, 5), middle_layer(),
                             std::make_shared<Net>(kWidth, 50));
  torch::optim::Adam same_optimizer(same->parameters(), torch::optim::AdamOptions(0.05));
  for (int64_t step = 0; step < 4; ++step) {
    const torch::Tensor input = numbers({3, kWidth}, 900 + step);
    const AutogradContext context = worker.autograd_context();
    const CallThrough scope(*model, context);
    const torch::Tensor loss = model->forward(input).pow(2).mean();
    context.backward({loss});
    optimizer.step(context);

    same_optimizer.zero_grad();
    const torch::Tensor same_loss = same->forward(input).pow(2).mean();
    EXPECT_TRUE(equal_bits(loss, same_loss)) << "step " << step;
    same_loss.backward();
    same_optimizer.step();
  }
  const auto expected = same->parameters();
  ASSERT_EQ(parameters.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(equal_bits(parameters[i].to_here(), expected[i])) << "parameter " << i;
}

TEST(RemoteLayer, TwoOfThemInASequentialTrainWithTheBitsOfTheLocalModel) {
  // Goal: a pipeline over two workers is an ordinary Sequential. Method: beside the same model in
  // one process, many seeds.
  Program program(net_functions());
  program.worker("trainer", train_sequential).worker("a", serve).worker("b", serve);
  EXPECT_TRUE(holds_under_faults(program));
}

TEST(RemoteLayer, HasNothingHereButTellsItsModuleTheMode) {
  // Goal: what a local model asks of a layer. Method: parameters, mode, text.
  run_once(net_functions(), [](Worker& worker) {
    const RemoteModule<Net> net(worker, "ps", kWidth, 5);
    torch::nn::Sequential model(std::make_shared<NetLayer>(net));
    EXPECT_TRUE(model->parameters().empty());
    model->eval();
    EXPECT_FALSE(net.is_training());
    model->train();
    EXPECT_TRUE(net.is_training());
    std::ostringstream text;
    text << model;
    EXPECT_NE(text.str().find("RemoteLayer(at 'ps')"), std::string::npos) << text.str();
  });
}

TEST(RemoteLayer, WithoutAScopeItComputesOnlyWhereNothingCouldBeRecorded) {
  // Goal: no gradient is lost silently. Method: with and without gradients, before and after.
  run_once(net_functions(), [](Worker& worker) {
    const RemoteModule<Net> net(worker, "ps", kWidth, 5);
    torch::nn::Sequential model(std::make_shared<NetLayer>(net));
    const torch::Tensor input = numbers({3, kWidth}, 900);
    const torch::Tensor expected = Net(kWidth, 5).forward(input);
    const auto refused = [&] {
      return error_of([&] { (void)model->forward(input); }).kind == ErrorKind::autograd;
    };
    EXPECT_TRUE(refused());
    {
      const AutogradContext context = worker.autograd_context();
      const CallThrough scope(*model, context);
      EXPECT_TRUE(equal_bits(model->forward(input), expected));
    }
    EXPECT_TRUE(refused());
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(equal_bits(model->forward(input), expected));
  });
}

TEST(RemoteLayer, IsRecordedWithWhoeverCallsIt) {
  // Goal: a local model that holds remote layers needs no word of them. Method: a pass while a
  // Recording lives, beside the same module here.
  run_once(net_functions(), [](Worker& worker) {
    const RemoteModule<Net> net(worker, "ps", kWidth, 5);
    torch::nn::Sequential model(std::make_shared<NetLayer>(net));
    const torch::Tensor input = numbers({3, kWidth}, 900).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    const auto recording = context.record();
    context.backward({model->forward(input).sum()});
    const torch::Tensor same = numbers({3, kWidth}, 900).requires_grad_();
    Net(kWidth, 5).forward(same).sum().backward();
    EXPECT_TRUE(equal_bits(context.get_gradients().find(input), same.grad()));
  });
}

TEST(RemoteLayer, IsUsedByOneScopeAtATime) {
  // Goal: two iterations cannot record in each other's context. Method: a second scope, of the
  // model and of the layer alone; after the first it is fine.
  run_once(net_functions(), [](Worker& worker) {
    const auto layer = std::make_shared<NetLayer>(RemoteModule<Net>(worker, "ps", kWidth, 5));
    torch::nn::Sequential model(layer);
    const AutogradContext context = worker.autograd_context();
    const AutogradContext other = worker.autograd_context();
    {
      const CallThrough scope(*model, context);
      EXPECT_THROW(CallThrough(*model, other), std::logic_error);
      EXPECT_THROW(CallThrough(*layer, other), std::logic_error);
    }
    const CallThrough scope(*layer, other);
    EXPECT_EQ(model->forward(numbers({3, kWidth}, 900)).size(0), 3);
    EXPECT_EQ(layer->module().owner().name, "ps");
  });
}

}  // namespace
}  // namespace rehearsal::testing
