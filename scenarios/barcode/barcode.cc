#include "scenarios/barcode/barcode.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/worker.h"
#include "scenarios/storm/dice.h"
#include "scenarios/storm/drawn_faults.h"
#include "sim/oracles/gradient.h"

namespace rehearsal::barcode {
namespace {

// One parameter at each worker. It is 1, so that what comes through is what went in.
struct Factor {
  Factor() : value(at::ones({1}, at::kDouble)) { value.set_requires_grad(true); }
  at::Tensor times(const at::Tensor& input) { return input * value; }
  double gradient(CallContext& context) {
    const at::Tensor found = get_gradients(context).find(value);
    return found.defined() ? found.item<double>() : 0;
  }
  at::Tensor value;
};

// Multiplies by the factors in turn, each at its own worker, by a call inside a call.
at::Tensor through(CallContext& context, const at::Tensor& input,
                   const std::vector<RRef<Factor>>& factors) {
  const at::Tensor output =
      factors.front().with_local([&input](Factor& factor) { return factor.times(input); });
  const std::vector<RRef<Factor>> rest(factors.begin() + 1, factors.end());
  if (rest.empty()) return output;
  return context.rpc_sync(rest.front().owner_name(), &through, output, rest);
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("through", &through);
  registry.type<Factor>("Factor")
      .constructor<>()
      .method("times", &Factor::times)
      .method("gradient", &Factor::gradient);
  return registry;
}

// Which factors each chain goes through: at least one, none twice, in a drawn order.
std::vector<std::vector<size_t>> draw_chains(Seed seed, uint64_t pass, size_t chains,
                                             size_t factors) {
  storm::Dice dice(seed, mix(hash_text("chains"), pass));
  std::vector<std::vector<size_t>> drawn(chains);
  for (std::vector<size_t>& chain : drawn) {
    std::vector<size_t> left(factors);
    for (size_t i = 0; i < factors; ++i) left[i] = i;
    const uint64_t length = 1 + dice.draw(factors);
    while (chain.size() < length) {
      const auto at = static_cast<std::ptrdiff_t>(dice.draw(left.size()));
      chain.push_back(left[static_cast<size_t>(at)]);
      left.erase(left.begin() + at);
    }
  }
  return drawn;
}

// The chains that go through this factor: what its gradient has to be.
std::vector<size_t> chains_through(const std::vector<std::vector<size_t>>& chains, size_t factor) {
  std::vector<size_t> found;
  for (size_t j = 0; j < chains.size(); ++j)
    for (const size_t passed : chains[j])
      if (passed == factor) found.push_back(j);
  return found;
}

// Returns the gradients, checked.
std::vector<double> run_pass(Worker& worker, const std::vector<RRef<Factor>>& factors,
                             const std::vector<std::vector<size_t>>& chains) {
  const AutogradContext context = worker.autograd_context();
  const auto recording = context.record();
  std::vector<Future<at::Tensor>> outputs;
  for (const std::vector<size_t>& chain : chains) {
    std::vector<RRef<Factor>> on_the_way;
    for (const size_t factor : chain) on_the_way.push_back(factors[factor]);
    outputs.push_back(worker.rpc_async(on_the_way.front().owner_name(), &through,
                                       at::ones({1}, at::kDouble), on_the_way));
  }
  at::Tensor loss = at::zeros({1}, at::kDouble);
  for (size_t j = 0; j < outputs.size(); ++j) loss = loss + outputs[j].wait() * sim::barcode(j);
  context.backward({loss});
  std::vector<double> gradients;
  for (size_t i = 0; i < factors.size(); ++i) {
    const double gradient = factors[i].rpc_sync(&Factor::gradient);
    const auto wrong = sim::barcode_difference(chains_through(chains, i), gradient);
    if (wrong) throw std::logic_error("gradient at " + factors[i].owner_name() + ": " + *wrong);
    gradients.push_back(gradient);
  }
  return gradients;
}

Program program(const ScenarioRun& run) {
  const auto workers = static_cast<uint32_t>(run.options.integer("workers"));
  const auto chains = static_cast<size_t>(run.options.integer("chains"));
  const int64_t passes = run.options.integer("passes");
  Program program(functions());
  program.worker("leader", [workers, chains, passes, seed = run.seed,
                            &reporter = run.reporter](Worker& worker) {
    std::vector<RRef<Factor>> factors;
    for (uint32_t i = 0; i < workers; ++i)
      factors.push_back(worker.remote<Factor>("worker" + std::to_string(i)));
    for (int64_t pass = 0; pass < passes; ++pass) {
      const std::vector<double> gradients = run_pass(
          worker, factors, draw_chains(seed, static_cast<uint64_t>(pass), chains, workers));
      reporter.results.tensor("gradients of pass " + std::to_string(pass),
                              at::tensor(gradients, at::kDouble));
    }
    reporter.results.number("gradients checked", static_cast<double>(passes * workers));
  });
  program.worker(
      "worker", [](Worker&) {}, Count{workers});
  return program;
}

ScenarioFaults draw_faults(const Options&, Seed seed) { return storm::draw_faults(seed, 25, 0); }

}  // namespace

Scenario scenario() {
  Scenario scenario;
  scenario.name = "barcode";
  scenario.summary = "backward passes whose gradients tell which call is missing or came twice";
  constexpr auto kChainsMax = static_cast<int64_t>(sim::kBarcodeContributions);
  scenario.options.integer("chains", {20, 6, 1, kChainsMax, "chains of calls in each pass", 2, 8})
      .integer("passes", {3, 1, 1, 1000, "backward passes", 1, 2})
      .integer("workers", {4, 2, 1, 64, "workers with a factor each, beside the leader", 1, 4});
  scenario.program = program;
  scenario.draw_faults = draw_faults;
  scenario.schedule_independent = true;
  return scenario;
}

}  // namespace rehearsal::barcode
