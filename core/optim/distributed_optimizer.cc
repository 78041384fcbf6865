#include "core/api/distributed_optimizer.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <map>
#include <optional>
#include <stdexcept>

#include "core/optim/local_optimizer.h"

namespace rehearsal {

// The parameters of one owner.
struct DistributedOptimizer::Share {
  WorkerInfo owner;
  RRef<LocalOptimizer> optimizer;
  std::vector<size_t> positions;  // of its parameters among all
};

DistributedOptimizer::DistributedOptimizer(const Calls& worker,
                                           const std::vector<RRef<at::Tensor>>& parameters,
                                           const torch::optim::OptimizerOptions& options)
    : parameter_count_(parameters.size()) {
  if (parameters.empty()) throw std::invalid_argument("an optimizer without parameters");
  const OptimizerSettings settings = settings_of(options);
  std::map<WorkerId, std::vector<size_t>> positions;
  for (size_t i = 0; i < parameters.size(); ++i) positions[parameters[i].owner().id].push_back(i);
  for (auto& [owner, places] : positions) {
    std::vector<RRef<at::Tensor>> owned;
    for (const size_t place : places) owned.push_back(parameters[place]);
    const WorkerInfo info = owned.front().owner();
    shares_.push_back(
        {info, worker.remote<LocalOptimizer>(info, settings, owned), std::move(places)});
  }
}

DistributedOptimizer::~DistributedOptimizer() = default;
DistributedOptimizer::DistributedOptimizer(DistributedOptimizer&&) noexcept = default;
DistributedOptimizer& DistributedOptimizer::operator=(DistributedOptimizer&&) noexcept = default;

// The value of each owner; if one failed, an error with every owner's outcome.
template <class T>
std::vector<T> DistributedOptimizer::gather(const std::string& what,
                                            std::vector<Future<T>> futures) const {
  std::vector<T> values;
  MaybeError failure;
  std::string outcomes;
  for (size_t i = 0; i < futures.size(); ++i) {
    Result<T> result = futures[i].result();
    outcomes += (i == 0 ? "'" : ", '") + shares_[i].owner.name + "' ";
    if (result.ok()) {
      outcomes += "done";
      values.push_back(std::move(result).value());
      continue;
    }
    outcomes +=
        "failed (" + std::string(name_of(result.error().kind)) + ": " + result.error().text + ")";
    if (!failure) failure = result.error();
  }
  if (!failure) return values;
  failure->text = what + ": " + outcomes;
  throw RpcError(std::move(*failure));
}

void DistributedOptimizer::step(const AutogradContext& context) const {
  std::vector<Future<Unit>> steps;
  for (const Share& share : shares_)
    steps.push_back(context.rpc_async(share.optimizer, &LocalOptimizer::step));
  (void)gather("the optimizer's step", std::move(steps));
}

double DistributedOptimizer::clip_grad_norm(const AutogradContext& context, double max_norm) const {
  std::vector<Future<std::vector<at::Tensor>>> answers;
  for (const Share& share : shares_)
    answers.push_back(context.rpc_async(share.optimizer, &LocalOptimizer::gradient_norms));
  const auto parts = gather("the norms of the gradients", std::move(answers));

  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> by_position(parameter_count_);
  for (size_t i = 0; i < shares_.size(); ++i)
    for (size_t j = 0; j < shares_[i].positions.size(); ++j)
      by_position[shares_[i].positions[j]] = parts[i].at(j);
  std::vector<at::Tensor> norms;
  for (const at::Tensor& norm : by_position)
    if (norm.defined()) norms.push_back(norm.cpu());
  if (norms.empty()) return 0;

  const at::Tensor total = norms.size() == 1 ? norms.front() : at::stack(norms).norm(2);
  const at::Tensor factor = at::clamp(max_norm / (total + 1e-6), std::nullopt, 1.0);
  if (factor.item<double>() != 1.0) {
    std::vector<Future<Unit>> scaled;
    for (const Share& share : shares_)
      scaled.push_back(
          context.rpc_async(share.optimizer, &LocalOptimizer::scale_gradients, factor));
    (void)gather("the scaling of the gradients", std::move(scaled));
  }
  return total.item<double>();
}

void register_optimizer(FunctionRegistry& registry) { LocalOptimizer::register_in(registry); }

}  // namespace rehearsal
