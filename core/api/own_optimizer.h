#pragma once

#include <string>
#include <vector>

#include "core/api/distributed_optimizer.h"
#include "core/api/optimizer_kind.h"
#include "core/functions/function_registry.h"

// Optimizers that a program writes itself, as LibTorch's are written: a torch::optim::Optimizer
// with a constructor that takes groups of parameters and its options, which derive from
// torch::optim::OptimizerCloneableOptions, can be made without arguments and describe their fields:
//
//   struct RpropOptions : torch::optim::OptimizerCloneableOptions<RpropOptions> {
//     double lr = 1e-2;
//     double get_lr() const override { return lr; }         // for schedulers
//     void set_lr(const double to) override { lr = to; }
//     friend void describe(RpropOptions& options, auto&& fields) { fields(options.lr); }
//   };
//   register_optimizer_type<Rprop, RpropOptions>(registry, "Rprop");
//   …
//   auto optimizer = make_distributed_optimizer<Rprop>(worker, parameters, RpropOptions());
namespace rehearsal {

namespace detail {

template <class Made, class Options>
const OptimizerKind& own_kind() {
  static const OptimizerKindOf<Made, Options> kind;
  return kind;
}

template <class Made, class Options>
OptimizerKindAt own_kind_here() {
  return {&own_kind<Made, Options>()};
}

}  // namespace detail

// Makes an optimizer usable at all workers of the program, under a name of its own among functions.
template <class Made, class Options>
void register_optimizer_type(FunctionRegistry& registry, const std::string& name) {
  registry.function(name, &detail::own_kind_here<Made, Options>);
}

// As DistributedOptimizer's constructors. Throws RpcError (unknown_function) if the optimizer is
// not registered.
template <class Made, class Options>
[[nodiscard]] DistributedOptimizer make_distributed_optimizer(
    const Calls& worker, const std::vector<ParameterGroup>& groups, const Options& defaults) {
  return DistributedOptimizer(
      worker, groups, defaults,
      OwnKind{.kind = &detail::own_kind<Made, Options>(), .at = [worker](const WorkerInfo& owner) {
                return worker.remote(owner, &detail::own_kind_here<Made, Options>);
              }});
}
template <class Made, class Options>
[[nodiscard]] DistributedOptimizer make_distributed_optimizer(
    const Calls& worker, const std::vector<RRef<at::Tensor>>& parameters, const Options& options) {
  return make_distributed_optimizer<Made, Options>(
      worker, std::vector<ParameterGroup>{ParameterGroup(parameters)}, options);
}

}  // namespace rehearsal
