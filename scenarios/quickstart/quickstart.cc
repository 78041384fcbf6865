#include "scenarios/quickstart/quickstart.h"

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include "core/api/call_context.h"
#include "core/api/distributed_optimizer.h"
#include "core/api/worker.h"

namespace rehearsal::quickstart {
namespace {

torch::Tensor add(const torch::Tensor& a, const torch::Tensor& b) { return a + b; }

struct EmbeddingTable {  // lives on the parameter server
  EmbeddingTable(int64_t tokens, int64_t width) : weight(torch::randn({tokens, width})) {
    weight.set_requires_grad(true);
  }
  torch::Tensor forward(const torch::Tensor& ids) { return torch::embedding(weight, ids); }
  std::vector<RRef<torch::Tensor>> parameters(CallContext& context) {
    return {context.rref(weight)};
  }
  torch::Tensor weight;
};

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add", &add);
  registry.type<EmbeddingTable>("EmbeddingTable")
      .constructor<int64_t, int64_t>()
      .method("forward", &EmbeddingTable::forward)
      .method("parameters", &EmbeddingTable::parameters);
  return registry;
}

constexpr int64_t kTokens = 50;
constexpr int64_t kWidth = 16;

void trainer(Worker& worker, int64_t steps, Reporter& reporter) {
  reporter.results.tensor("sum", worker.rpc_sync("ps", &add, torch::ones(2), torch::ones(2)));

  auto table = worker.remote<EmbeddingTable>("ps", kTokens, kWidth);
  torch::nn::Linear local(kWidth, kTokens);
  auto parameters = table.rpc_sync(&EmbeddingTable::parameters);
  for (auto& parameter : local->parameters()) parameters.push_back(worker.rref(parameter));
  DistributedOptimizer optimizer(worker, parameters, torch::optim::AdamOptions(1e-2));

  const torch::Tensor ids = torch::randint(kTokens, {32});
  const torch::Tensor targets = torch::remainder(ids + 1, kTokens);
  torch::Tensor loss;
  for (int64_t step = 0; step < steps; ++step) {
    AutogradContext context = worker.autograd_context();
    auto recording = context.record();
    auto embedded = table.rpc_sync(&EmbeddingTable::forward, ids);
    loss = torch::nn::functional::cross_entropy(local(embedded), targets);
    context.backward({loss});
    optimizer.step(context);
    if (step == 0) reporter.results.number("first_loss", loss.item<double>());
  }
  reporter.results.number("last_loss", loss.item<double>());
  reporter.results.tensor("table", parameters.front().to_here());
  reporter.results.tensor("local", local->weight);
}

Program program(const ScenarioRun& run) {
  Program program(functions());
  program.worker("ps", [](Worker&) {});
  program.worker("trainer", [steps = run.options.integer("steps"), &reporter = run.reporter](
                                Worker& worker) { trainer(worker, steps, reporter); });
  return program;
}

}  // namespace

Scenario scenario() {
  Scenario scenario;
  scenario.name = "quickstart";
  scenario.summary = "the README's example: a call, a remote table, gradients and an optimizer";
  scenario.options.integer("steps", {50, 3, 1, 100'000, "of the optimizer"});
  scenario.schedule_independent = true;
  scenario.program = program;
  return scenario;
}

}  // namespace rehearsal::quickstart
