// The state of each of LibTorch's optimizers goes on with a checkpoint: a life that resumes in the
// middle ends with the bits of one that trained to the end.
#include <gtest/gtest.h>
#include <torch/optim.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/core/checkpoint/small_training.h"

namespace rehearsal::testing {
namespace {

using torch::optim::OptimizerOptions;

struct Named {
  const char* name;
  std::shared_ptr<const OptimizerOptions> options;
  friend void PrintTo(const Named& named, std::ostream* out) { *out << named.name; }
};

template <class Options>
Named named(const char* name, const Options& options) {
  return {name, std::make_shared<const Options>(options)};
}

const std::vector<Named>& optimizers() {
  using namespace torch::optim;
  static const std::vector<Named> all = {
      named("sgd", SGDOptions(0.1)),
      named("sgd_nesterov", SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.01)),
      named("adam", AdamOptions(0.05)),
      named("adam_amsgrad", AdamOptions(0.05).amsgrad(true).weight_decay(0.01)),
      named("adamw", AdamWOptions(0.05)),
      named("adamw_amsgrad", AdamWOptions(0.05).amsgrad(true)),
      named("adagrad", AdagradOptions(0.1).lr_decay(0.01)),
      named("rmsprop", RMSpropOptions(0.01)),
      named("rmsprop_centered", RMSpropOptions(0.01).momentum(0.9).centered(true))};
  return all;
}

constexpr int64_t kSteps = 6;

// Trains to `end`, saving each third step; then, unless that is the last one, the life ends.
void train_a_layer(Worker& worker, const OptimizerOptions& options, int64_t end,
                   std::vector<at::Tensor>& values) {
  const RemoteModule<NoisyLayer> layer(worker, "owner", 3, 2);
  DistributedOptimizer optimizer(worker, layer.remote_parameters(), options);
  DistributedCheckpoint checkpoint(worker, "layer");
  checkpoint.module("layer", layer).optimizer("optimizer", optimizer);
  int64_t step = checkpoint.resume();
  for (; step < end;) {
    const AutogradContext context = worker.autograd_context();
    {
      const auto recording = context.record();
      const at::Tensor input = at::sin(at::arange(12, at::kFloat) * static_cast<double>(step + 1));
      context.backward({layer.forward(input.view({4, 3})).pow(2).sum()});
    }
    optimizer.step(context);
    if (++step % 3 == 0) checkpoint.save(step);
  }
  checkpoint.wait();
  values = layer.rpc_sync(&NoisyLayerImpl::state);
  if (end < kSteps) throw RpcError({.kind = ErrorKind::peer_lost, .text = "a loss", .worker = "x"});
}

class ResumedOptimizers : public ::testing::TestWithParam<Named> {};

TEST_P(ResumedOptimizers, GoOnWithTheirState) {
  // Goal: no moment, square or count is lost. Method: six steps in one life, beside three and three
  // in two lives.
  const auto values_after = [](const std::vector<int64_t>& ends) {
    std::vector<at::Tensor> values;
    size_t life = 0;
    Program program(training_registry());
    program
        .worker("trainer",
                [&](Worker& worker) {
                  train_a_layer(worker, *GetParam().options, ends.at(life++), values);
                })
        .recovering();
    program.worker("owner").recovering();
    sim::Cluster(Seed{5}, program).run();
    EXPECT_EQ(life, ends.size());
    return values;
  };
  const std::vector<at::Tensor> whole = values_after({kSteps});
  const std::vector<at::Tensor> resumed = values_after({kSteps / 2, kSteps});
  ASSERT_EQ(whole.size(), resumed.size());
  ASSERT_FALSE(whole.empty());
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(whole[i].equal(resumed[i])) << i;
}

INSTANTIATE_TEST_SUITE_P(Kinds, ResumedOptimizers, ::testing::ValuesIn(optimizers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace rehearsal::testing
