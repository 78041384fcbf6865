// Goal: several trainers step over the same parameters, in turn or as it comes, and no step is lost
// or torn. Method: gradients that do not depend on the parameters, of numbers whose sums are exact
// in any order; at simulated workers and over TCP.
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include "tests/core/optim/split_model.h"
#include "tests/effort.h"
#include "tests/real_net/support/loopback_group.h"

namespace rehearsal::testing {
namespace {

using torch::optim::SGDOptions;

class Vector {
 public:
  at::Tensor dot(const at::Tensor& x) { return (w_ * x).sum(); }
  RRef<at::Tensor> parameter(CallContext& call) { return call.rref(w_); }
  at::Tensor value() { return w_.detach().clone(); }

 private:
  at::Tensor w_ = at::zeros({5}).requires_grad_();
};

FunctionRegistry vector_functions() {
  FunctionRegistry registry;
  registry.type<Vector>("Vector")
      .constructor<>()
      .method("dot", &Vector::dot)
      .method("parameter", &Vector::parameter)
      .method("value", &Vector::value);
  return registry;
}

// Three trainers, with one optimizer each, over two vectors at two owners.
void expect_all_steps_count(bool in_turn) {
  Program program(vector_functions());
  program.worker(
      "trainer",
      [in_turn](Worker& worker) {
        const std::vector<std::string> trainers = {"trainer0", "trainer1", "trainer2"};
        const auto first = worker.lookup<Vector>("owner0", "vector");
        const auto second = worker.lookup<Vector>("owner1", "vector");
        const DistributedOptimizer optimizer(
            worker, {first.rpc_sync(&Vector::parameter), second.rpc_sync(&Vector::parameter)},
            SGDOptions(0.5));
        const at::Tensor x = at::full({5}, static_cast<double>(worker.id().value + 1), at::kFloat);
        for (int step = 0; step < 4; ++step) {
          for (const bool last : {false, true}) {
            const AutogradContext context = worker.autograd_context();
            context.backward({context.rpc_sync(first, &Vector::dot, x) +
                              context.rpc_sync(second, &Vector::dot, x * 4)});
            if (!last)
              optimizer.accumulate(context);
            else
              optimizer.step(context);
          }
          if (!in_turn) continue;
          worker.barrier(trainers);
          // Four steps of two terms each move by half of (1 + 2 + 3) times two.
          const auto done = static_cast<double>(step + 1);
          EXPECT_TRUE(equal_bits(first.rpc_sync(&Vector::value), at::full({5}, -6.0F * done)));
          worker.barrier(trainers);
        }
        worker.barrier(trainers);
        EXPECT_TRUE(equal_bits(first.rpc_sync(&Vector::value), at::full({5}, -24.0F)));
        EXPECT_TRUE(equal_bits(second.rpc_sync(&Vector::value), at::full({5}, -96.0F)));
      },
      Count{3});
  program.worker(
      "owner", [](Worker& worker) { worker.publish("vector", worker.rref(Vector())); }, Count{2});
  EXPECT_TRUE(sim::holds_for_seeds(tries(10), [&](Seed seed) {
    const auto faults = seed.value % 2 == 0 ? sim::FaultLevel::mild : sim::FaultLevel::hostile;
    sim::Cluster cluster(seed, program, {.faults = faults});
    cluster.run();
  }));
  real::LoopbackGroup group(program, {.worker_threads = 2});
  for (const Status& ended : group.run()) EXPECT_TRUE(ended.ok()) << to_string(ended.error());
}

TEST(SeveralTrainers, StepAsItComesAndEveryStepCounts) { expect_all_steps_count(false); }
TEST(SeveralTrainers, StepInTurnAndEveryStepCounts) { expect_all_steps_count(true); }

}  // namespace
}  // namespace rehearsal::testing
