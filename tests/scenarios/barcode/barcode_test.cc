#include "scenarios/barcode/barcode.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/oracles/gradient.h"
#include "tests/scenarios/simulated.h"

namespace rehearsal {
namespace {

TEST(Barcode, EveryGradientHasEachOfItsContributionsOnceWhateverTheNetworkDoes) {
  // Goal: no gradient is lost or doubled by what the network does. Method: 100 seeds, as hostile as
  // it gets.
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const SimulatedRun run = simulated(barcode::scenario(), seed, sim::FaultLevel::hostile);
    ASSERT_TRUE(run.outcome.ok) << seed << ": " << failure_text(run.outcome);
    EXPECT_EQ(run.outcome.results.numbers().at("gradients checked"), 2);
  }
}

struct Factor {
  Factor() : value(at::ones({1}, at::kDouble)) { value.set_requires_grad(true); }
  at::Tensor times(const at::Tensor& input) { return input * value; }
  double gradient(CallContext& context) {
    return get_gradients(context).find(value).item<double>();
  }
  at::Tensor value;
};

// Calls the factor once for each contribution, and gives its gradient.
double gradient_of(Worker& worker, const std::vector<size_t>& contributions) {
  const auto factor = worker.remote<Factor>("worker");
  const AutogradContext context = worker.autograd_context();
  at::Tensor loss = at::zeros({1}, at::kDouble);
  for (const size_t j : contributions) {
    const at::Tensor input = at::full({1}, sim::barcode(j), at::kDouble);
    loss = loss + context.rpc_sync(factor, &Factor::times, input);
  }
  context.backward({loss});
  return context.rpc_sync(factor, &Factor::gradient);
}

TEST(Barcode, NamesTheCallThatAProgramMakesTwiceAndTheOneThatItForgets) {
  // Goal: it sees what it is for, in a gradient that came over the network. Method: a program that
  // calls once too often and once too little.
  FunctionRegistry registry;
  registry.type<Factor>("Factor")
      .constructor<>()
      .method("times", &Factor::times)
      .method("gradient", &Factor::gradient);
  Program program(std::move(registry));
  std::optional<std::string> right;
  std::optional<std::string> wrong;
  program.worker("leader", [&right, &wrong](Worker& worker) {
    right = sim::barcode_difference({0, 1, 2}, gradient_of(worker, {2, 0, 1}));
    wrong = sim::barcode_difference({0, 1, 2}, gradient_of(worker, {0, 2, 2}));
  });
  program.worker("worker", [](Worker&) {});
  sim::Cluster cluster(Seed{1}, program);
  cluster.run();
  EXPECT_EQ(right, std::nullopt);
  EXPECT_EQ(wrong, "contribution 1 is missing, contribution 2 has come twice");
}

}  // namespace
}  // namespace rehearsal
