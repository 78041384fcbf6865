// Goal: a pipeline over TCP computes what it computes in the simulator: the gradients of one
// process. Method: two stages, each at a worker with two threads, and eight micro-batches.
#include "core/api/pipeline.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/api/worker.h"
#include "tests/real_net/support/loopback_group.h"

namespace rehearsal::real {
namespace {

struct Half : torch::nn::Module {
  explicit Half(int64_t seed)
      : weight(register_parameter("weight",
                                  torch::sin(torch::arange(seed, seed + 64)).view({8, 8}))) {}
  torch::Tensor forward(torch::Tensor x) { return torch::tanh(torch::matmul(x, weight)); }
  torch::Tensor weight;
};

at::Tensor gradient_of(CallContext& call, const RRef<at::Tensor>& parameter) {
  return get_gradients(call).find(parameter.local_value());
}

TEST(Pipelines, HaveTheGradientsOfOneProcess) {
  FunctionRegistry registry;
  register_module<Half, int64_t>(registry, "Half");
  registry.function("gradient_of", &gradient_of);
  Program program(std::move(registry));
  program.worker("leader", [](Worker& worker) {
    const RemoteModule<Half> first(worker, "first", 1);
    const RemoteModule<Half> second(worker, "second", 2);
    const Pipeline pipeline(worker, {first, second});
    const auto loss = [](const at::Tensor& output, size_t) { return output.pow(2).sum(); };
    const auto inputs = torch::cos(torch::arange(32 * 8)).view({32, 8}).chunk(8);
    const std::vector<RRef<at::Tensor>> parameters{first.remote_parameters().at(0),
                                                   second.remote_parameters().at(0)};
    Half same_first(1);
    Half same_second(2);
    for (int step = 0; step < 5; ++step) {
      const PipelineStep done = pipeline.step(inputs, loss);
      for (size_t i = 0; i < inputs.size(); ++i) {
        const at::Tensor expected = loss(same_second.forward(same_first.forward(inputs[i])), i);
        EXPECT_TRUE(at::equal(done.losses.at(i), expected));
        const auto gradients =
            torch::autograd::grad({expected}, {same_first.weight, same_second.weight});
        for (size_t j = 0; j < gradients.size(); ++j)
          EXPECT_TRUE(at::equal(
              done.contexts[i].rpc_sync(parameters[j].owner().id, &gradient_of, parameters[j]),
              gradients[j]));
      }
    }
  });
  program.worker("first").worker("second");
  for (const Status& end : LoopbackGroup(program, {}).run())
    EXPECT_TRUE(end.ok()) << to_string(end.error());
}

}  // namespace
}  // namespace rehearsal::real
