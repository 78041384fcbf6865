// The layers on the public interface, over real threads and TCP: batches, sleep, remote modules.
#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "core/api/batcher.h"
#include "core/api/distributed_optimizer.h"
#include "core/api/remote_layer.h"
#include "core/api/worker.h"
#include "tests/real_net/support/loopback_group.h"

namespace rehearsal::real {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kClients = 3;
constexpr int64_t kRounds = 50;

void expect_all_well(const std::vector<Status>& ends) {
  for (const Status& end : ends) EXPECT_TRUE(end.ok()) << to_string(end.error());
}

// Its body and its methods use the same members, without a lock.
class Rounds {
 public:
  Rounds(CallContext& call, int64_t size, int64_t delay)
      : batcher_(call, {.size = static_cast<uint64_t>(size), .delay = milliseconds(delay)},
                 [this](const std::vector<int64_t>& items) {
                   for (const int64_t item : items) total_ += item;
                   ++rounds_;
                   return std::vector<int64_t>(items.size(), total_);
                 }) {}
  Future<int64_t> add(int64_t item) { return batcher_.add(item); }
  void add_alone(int64_t item) { total_ += item; }
  int64_t rounds() const { return rounds_; }

 private:
  int64_t total_ = 0;
  int64_t rounds_ = 0;
  Batcher<int64_t, int64_t> batcher_;
};

// The answers that it got, round by round.
std::vector<int64_t> play(CallContext& call, const RRef<Rounds>& rounds) {
  std::vector<int64_t> totals;
  for (int64_t i = 0; i < kRounds; ++i) {
    call.rpc_sync(rounds, &Rounds::add_alone, 1);
    totals.push_back(call.rpc_sync(rounds, &Rounds::add, 100));
  }
  return totals;
}

FunctionRegistry round_functions() {
  FunctionRegistry registry;
  registry.function("play", &play);
  registry.type<Rounds>("Rounds")
      .constructor<CallContext&, int64_t, int64_t>()
      .method("add", &Rounds::add)
      .method("add_alone", &Rounds::add_alone)
      .method("rounds", &Rounds::rounds);
  return registry;
}

TEST(Layers, BatchesRunInRoundsOfEverybody) {
  // Goal: body and methods share members without a lock. Method: three clients in rounds, with any
  // number of threads; all are answered alike, and no addition is lost.
  Program program(round_functions());
  program.worker("server", [](Worker& worker) {
    const auto rounds = worker.remote<Rounds>("server", kClients, 60'000);
    std::vector<Future<std::vector<int64_t>>> clients;
    for (int64_t i = 0; i < kClients; ++i)
      clients.push_back(worker.rpc_async("client" + std::to_string(i), &play, rounds));
    const std::vector<int64_t> first = clients[0].wait();
    EXPECT_EQ(clients[1].wait(), first);
    EXPECT_EQ(clients[2].wait(), first);
    ASSERT_EQ(first.size(), static_cast<size_t>(kRounds));
    EXPECT_EQ(first.back(), kRounds * kClients * 101);
    EXPECT_EQ(worker.rpc_sync(rounds, &Rounds::rounds), kRounds);
  });
  program.worker("client", Count{kClients});
  for (const uint32_t threads : {0U, 1U, 2U})
    expect_all_well(LoopbackGroup(program, {.worker_threads = threads}).run());
}

TEST(Layers, SleepAndTheDelayOfABatchTakeTheirTime) {
  // Goal: no wait is shorter than it was asked for. Method: this worker's own clock.
  Program program(round_functions());
  program.worker("server").worker("client", [](Worker& worker) {
    const auto rounds = worker.remote<Rounds>("server", 100, 30);
    const auto lasts = [&](auto body) {
      const Instant start = worker.now();
      body();
      return worker.now() - start;
    };
    EXPECT_GE(lasts([&] { worker.sleep(milliseconds(20)); }), milliseconds(20));
    EXPECT_GE(lasts([&] { worker.after(milliseconds(20)).wait(); }), milliseconds(20));
    EXPECT_GE(lasts([&] { EXPECT_EQ(worker.rpc_sync(rounds, &Rounds::add, 7), 7); }),
              milliseconds(30));
  });
  expect_all_well(LoopbackGroup(program, {}).run());
}

TEST(Layers, ARemoteLayerTrainsAsTheLocalOneDoes) {
  // Goal: the same module over TCP. Method: a linear layer at the server beside a copy here.
  FunctionRegistry registry;
  register_module<torch::nn::Linear, int64_t, int64_t>(registry, "Linear");
  Program program(std::move(registry));
  program.worker("server").worker("trainer", [](Worker& worker) {
    const RemoteModule<torch::nn::Linear> remote(worker, "server/cpu", 4, 2);
    torch::nn::Sequential model(std::make_shared<RemoteLayer<torch::nn::Linear>>(remote));
    torch::nn::Linear same(4, 2);
    const auto parameters = remote.remote_parameters();
    {
      const torch::NoGradGuard no_grad;
      for (size_t i = 0; i < parameters.size(); ++i)
        same->parameters()[i].copy_(parameters[i].to_here());
    }
    const DistributedOptimizer optimizer(worker, parameters, torch::optim::SGDOptions(0.1));
    torch::optim::SGD same_optimizer(same->parameters(), torch::optim::SGDOptions(0.1));
    for (int step = 0; step < 5; ++step) {
      const torch::Tensor input = torch::arange(12, torch::kFloat).reshape({3, 4}) / (step + 5);
      const AutogradContext context = worker.autograd_context();
      const CallThrough scope(*model, context);
      context.backward({model->forward(input).pow(2).mean()});
      optimizer.step(context);
      same_optimizer.zero_grad();
      same->forward(input).pow(2).mean().backward();
      same_optimizer.step();
    }
    for (size_t i = 0; i < parameters.size(); ++i)
      EXPECT_TRUE(parameters[i].to_here().equal(same->parameters()[i]));
  });
  expect_all_well(LoopbackGroup(program, {}).run());
}

}  // namespace
}  // namespace rehearsal::real
