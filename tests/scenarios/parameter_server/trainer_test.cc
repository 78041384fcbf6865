#include "scenarios/parameter_server/trainer.h"

#include <gtest/gtest.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "sim/cluster.h"
#include "tests/reference/row.h"

namespace rehearsal::parameter_server {
namespace {

using Main = std::function<void(Worker&)>;

Program with_trainers(const Main& main, uint32_t trainers) {
  FunctionRegistry registry;
  register_server(registry);
  Program program(std::move(registry));
  program.worker(kServerName).state<ServerSlot>();
  program.worker("trainer", main, Count{trainers});
  return program;
}

TrainingSettings small_settings(bool drops) {
  return {.sizes = {.channels = 4, .hidden = 16, .drops = drops}, .batch = 8, .learning_rate = 0.1};
}

// The reference's: of digit d the rows from the first to row d are white, and label i is i mod 10.
Digits striped_digits(int64_t count) {
  const torch::Tensor labels = torch::arange(count).remainder(kDigitCount);
  const torch::Tensor rows = torch::arange(kPictureSide).reshape({1, 1, kPictureSide, 1});
  const torch::Tensor white = rows.le(labels.reshape({count, 1, 1, 1})).to(torch::kFloat);
  return {white.expand({count, 1, kPictureSide, kPictureSide}).contiguous(), labels};
}

// Rows: examples/parameter_server_test::ParameterServerTest.test_parameter_server
TEST(ParameterServerTrainer, TheLossFallsAtEachOfFiveCheckpoints) {
  // Goal: one server, one trainer, 22 batches of 32: the losses of batches 0, 5, 10, 15 and 20 fall
  // strictly, with every gradient at the server in every step. Method: in both worlds.
  const auto main = [](Worker& worker) {
    Trainer trainer(worker, {.sizes = {.channels = 8, .hidden = 64, .drops = false},
                             .batch = 32,
                             .learning_rate = 0.1});
    const Digits digits = striped_digits(22 * 32);
    std::vector<double> losses;
    for (int64_t i = 0; i < 22; ++i) {
      const double loss = trainer.train(part_of(digits, i * 32, 32));
      if (i % 5 == 0) losses.push_back(loss);
    }
    EXPECT_EQ(trainer.steps(), 22);
    ASSERT_EQ(losses.size(), 5u);
    for (size_t i = 1; i < losses.size(); ++i) EXPECT_LT(losses[i], losses[i - 1]) << i;
    EXPECT_LT(losses.back(), losses.front() - 0.01);  // how far depends on the first values
  };
  reference::in_both_worlds(with_trainers(main, 1), {.seeds = 5});
}

TEST(ParameterServerTrainer, OneTrainerGivesTheBitsOfOneProcess) {
  // Goal: distribution changes no bit. Method: the same first values, trained by LibTorch's own
  // engine and SGD.
  const TrainingSettings settings = small_settings(false);
  const Digits digits = draw_digits(4, 5 * settings.batch);
  std::vector<torch::Tensor> before, after;
  std::vector<double> losses;
  const Program program = with_trainers(
      [&](Worker& worker) {
        Trainer trainer(worker, settings);
        before = trainer.server().rpc_sync(&Server::values);
        for (int64_t i = 0; i < 5; ++i)
          losses.push_back(trainer.train(part_of(digits, i * settings.batch, settings.batch)));
        after = trainer.server().rpc_sync(&Server::values);
      },
      1);
  sim::Cluster(Seed{3}, program).run();
  Net net(settings.sizes);
  ASSERT_EQ(before.size(), net.parameters().size());
  for (size_t i = 0; i < before.size(); ++i) {
    const torch::NoGradGuard no_grad;
    net.parameters()[i].copy_(before[i]);
  }
  torch::optim::SGD optimizer(net.parameters(), settings.learning_rate);
  for (int64_t i = 0; i < 5; ++i) {
    const Digits batch = part_of(digits, i * settings.batch, settings.batch);
    optimizer.zero_grad();
    const torch::Tensor loss = torch::nll_loss(net.forward(batch.pictures, true), batch.labels);
    loss.backward();
    optimizer.step();
    EXPECT_EQ(loss.item<double>(), losses.at(static_cast<size_t>(i)));
  }
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(net.parameters()[i].equal(after[i])) << i;
    EXPECT_FALSE(before[i].equal(after[i])) << i;
  }
}

TEST(ParameterServerTrainer, AStepBetweenForwardAndBackwardOfAnotherTrainerHarmsNothing) {
  // Goal: trainers that do not wait for each other can be in any state when one of them steps.
  // Method: a forward pass, a whole step of another trainer, then the backward pass; its gradient
  // is that of the values before the step.
  const TrainingSettings settings = small_settings(false);
  const Digits digits = draw_digits(4, settings.batch);
  std::vector<torch::Tensor> first, found;
  const Program program = with_trainers(
      [&](Worker& worker) {
        Trainer other(worker, settings);
        const RRef<Server>& server = other.server();
        first = server.rpc_sync(&Server::values);
        const AutogradContext context = worker.autograd_context();
        const torch::Tensor output =
            context.rpc_sync(server, &Server::forward, digits.pictures, true);
        other.train(digits);
        context.backward({torch::nll_loss(output, digits.labels)});
        found = context.rpc_sync(server, &Server::gradients);
      },
      1);
  sim::Cluster(Seed{3}, program).run();
  Net net(settings.sizes);
  for (size_t i = 0; i < first.size(); ++i) {
    const torch::NoGradGuard no_grad;
    net.parameters()[i].copy_(first[i]);
  }
  torch::nll_loss(net.forward(digits.pictures, true), digits.labels).backward();
  for (size_t i = 0; i < first.size(); ++i)
    EXPECT_TRUE(net.parameters()[i].grad().equal(found.at(i))) << i;
}

TEST(ParameterServerTrainer, AMissingGradientIsNamed) {
  // Goal: the check at the server can fail. Method: it is asked before the backward pass.
  std::string text;
  const Program program = with_trainers(
      [&](Worker& worker) {
        const Trainer trainer(worker, small_settings(false));
        const AutogradContext context = worker.autograd_context();
        const Digits digits = draw_digits(4, 8);
        static_cast<void>(
            context.rpc_sync(trainer.server(), &Server::forward, digits.pictures, true));
        text = reference::error_of([&] {
                 context.rpc_sync(trainer.server(), &Server::gradients);
               }).text;
      },
      1);
  sim::Cluster(Seed{1}, program).run();
  EXPECT_EQ(text, "std::logic_error: no gradient for conv1.weight in this context");
}

TEST(ParameterServerTrainer, AStepTooFewOrTooManyIsSeen) {
  // Goal: the check of the sums is sharp. Method: two shares and their change, then with one of
  // them missing, doubled, or changed by little.
  const Share one{"s", 2, {torch::full({3}, 0.25, torch::kDouble)}};
  const Share two{"s", 1, {torch::full({3}, 1e-4, torch::kDouble)}};
  const std::vector<torch::Tensor> changes = {torch::full({3}, -0.2501F)};
  EXPECT_TRUE(explains({one, two}, changes));
  EXPECT_FALSE(explains({one}, changes));
  EXPECT_FALSE(explains({one, two, two}, changes));
  EXPECT_FALSE(explains({one, two}, {torch::full({3}, -0.250102F)}));
}

}  // namespace
}  // namespace rehearsal::parameter_server
