#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/api/autograd_context.h"
#include "core/api/calls.h"

namespace torch::optim {
class Optimizer;
class OptimizerOptions;
}  // namespace torch::optim

namespace rehearsal {

class OptimizerKind;
struct OptimizerKindAt;

// Parameters that have options of their own, or else the optimizer's.
struct ParameterGroup {
  explicit ParameterGroup(std::vector<RRef<at::Tensor>> given) : parameters(std::move(given)) {}
  template <class Options>
  ParameterGroup(std::vector<RRef<at::Tensor>> given, const Options& own)
      : parameters(std::move(given)), options(std::make_shared<const Options>(own)) {}

  std::vector<RRef<at::Tensor>> parameters;
  std::shared_ptr<const torch::optim::OptimizerOptions> options;  // null: the optimizer's
};

// The outcome of a step at one owner.
struct OwnerReport {
  WorkerInfo owner;
  MaybeError error;             // none: the step has been applied
  bool applied_before = false;  // by an attempt whose answer was lost
};

// How an optimizer of the program's own is found at its owners: see own_optimizer.h.
struct OwnKind {
  const OptimizerKind* kind = nullptr;
  std::function<RRef<OptimizerKindAt>(const WorkerInfo& owner)> at;
};

// An optimizer over parameters that live at several workers: one of LibTorch's, SGD, Adam, AdamW,
// Adagrad or RMSprop, as the options given say (torch::optim::AdamOptions(1e-3), …; include
// <torch/optim/adam.h> or <torch/torch.h> for them), or one of the program's own
// (own_optimizer.h). Each owner keeps its part of the optimizer's state. A parameter is known by
// its identity at the owner, however many references name it.
//
// One execution at a time uses it. Several trainers have one each, over the same parameters: an
// owner takes their steps one after another.
//
// On devices, a step comes after all that the methods of a parameter and the context's pass have
// given to them. Calls and passes that were given up may read a parameter while a later step
// changes it: nobody gets what they make of it.
//
// All methods that take a context, or that say so, park and throw RpcError with every owner's
// outcome unless all have done it; then the error says which owners have.
class DistributedOptimizer {
 public:
  // `worker` is who steps. Never parks: what goes wrong at an owner is told by the first step.
  // Throws std::invalid_argument for options of an optimizer that cannot be distributed, and for no
  // parameters.
  DistributedOptimizer(const Calls& worker, const std::vector<RRef<at::Tensor>>& parameters,
                       const torch::optim::OptimizerOptions& options);

  // Groups as torch::optim::OptimizerParamGroup makes them: all options are of one type.
  DistributedOptimizer(const Calls& worker, const std::vector<ParameterGroup>& groups,
                       const torch::optim::OptimizerOptions& defaults);

  // One of the program's own: use make_distributed_optimizer.
  DistributedOptimizer(const Calls& worker, const std::vector<ParameterGroup>& groups,
                       const torch::optim::OptimizerOptions& defaults, OwnKind kind);

  ~DistributedOptimizer();
  DistributedOptimizer(DistributedOptimizer&&) noexcept;
  DistributedOptimizer& operator=(DistributedOptimizer&&) noexcept;

  // ---- steps ----

  // One step with the gradients of the context; a parameter without one is untouched. One call for
  // each owner, side by side; each is applied once, also if sent again. The error is of kind
  // autograd if an owner has no gradient for any of its parameters there, which is how gradients
  // that got lost show.
  void step(const AutogradContext& context) const;

  // Owners without any gradient in a step's context are left as they are, and that is no error: for
  // models of which a step uses a part only.
  void allow_owners_without_gradients(bool allowed = true);

  // The last step again, with the same context and options, after it failed: owners that have
  // applied it, whether their answer came or not, change nothing; an owner at which the optimizer
  // itself threw halfway refuses. A late first attempt is void. Throws std::logic_error if the last
  // call was no step, or one with another context. Parks, as step does, for one round more.
  void retry_step(const AutogradContext& context) const;

  // The outcome of the last step, or of its repetition, at each owner, in rank order.
  [[nodiscard]] const std::vector<OwnerReport>& step_reports() const;

  // ---- options and schedulers ----

  // The options of each group, which may be changed: a torch::optim::Optimizer without parameters,
  // for LibTorch's schedulers (torch::optim::StepLR scheduler(optimizer.groups(), 10)) and by hand
  // (optimizer.groups().param_groups()[0].options().set_lr(0.1)). A difference from an owner's
  // options goes along with its next step. It lives as long as this object, also if that is moved.
  [[nodiscard]] torch::optim::Optimizer& groups() const;

  // ---- several contexts for one step ----

  // Each owner adds the context's gradients, as they are now, to a sum of its own: the next step
  // uses the sum, with its own context's gradients as the last term, as if `backward` had been
  // called for each of them in one process. After an error nothing has been added anywhere: it can
  // be called again. The step ends the sum, whether it fails or not; retry_step uses the same.
  void accumulate(const AutogradContext& context) const;

  // A step with the sum alone, with the worker's own timeout. Throws std::logic_error if there is
  // none. Parks; throws RpcError.
  void step() const;
  void retry_step() const;

  // Forgets the sum. Never parks.
  void drop_accumulated() const;

  // ---- gradients ----
  //
  // Of a context; or, without one, the sum of what was accumulated. While there is a sum they throw
  // std::logic_error for a context: accumulate that, too.

  // Scales the gradients of all parameters together so that their 2-norm is at most
  // `max_norm`, with the bits that torch::nn::utils::clip_grad_norm_ gives for them in the
  // order given. The norm before. After an error of the scaling the gradients are of no more use.
  double clip_grad_norm(const AutogradContext& context, double max_norm) const;
  double clip_grad_norm(double max_norm) const;

  // Bounds each element by `max_value` from above and its negative from below, as
  // torch::nn::utils::clip_grad_value_ does.
  void clip_grad_value(const AutogradContext& context, double max_value) const;
  void clip_grad_value(double max_value) const;

 private:
  friend class DistributedGradScaler;
  friend class OptimizerInCheckpoint;
  struct State;

  // Multiplies gradients, once at each owner however often it is called with the same `number`,
  // which it gives if that is zero. Whether all are finite everywhere.
  bool unscale(const AutogradContext* context, double factor, uint64_t& number) const;
  void step_with(const AutogradContext* context) const;
  void retry_with(const AutogradContext* context) const;
  double clip_norm_of(const AutogradContext* context, double max_norm) const;
  void clip_value_of(const AutogradContext* context, double max_value) const;

  std::unique_ptr<State> state_;
};

// The functions that every program has: the owners' parts.
class FunctionRegistry;
void register_optimizer(FunctionRegistry& registry);

}  // namespace rehearsal
