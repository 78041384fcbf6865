#include "core/optim/local_optimizer.h"

#include <ATen/core/grad_mode.h>
#include <torch/optim/optimizer.h>

#include <unordered_set>

#include "core/api/autograd_context.h"
#include "core/autograd/contexts.h"
#include "core/base/user_code.h"
#include "core/functions/function_registry.h"

namespace rehearsal {
namespace {

// The parameters of this worker are nobody else's while it lives. Parks at its start.
class ParametersGuard {
 public:
  explicit ParametersGuard(const Caller& caller)
      : strand_(*caller.strand()), contexts_(caller.contexts()) {
    const Status entered =
        strand_.wait("its turn to change parameters", {}, [this](WaitHandle wait) {
          Monitor& monitor = contexts_.parameters_monitor();
          monitor.enter([wait, &monitor] {
            if (!wait.lasts()) return monitor.leave();
            wait.end();
          });
        });
    if (!entered.ok()) throw RpcError(entered.error());
  }
  ~ParametersGuard() {
    strand_.post([&contexts = contexts_] { contexts.parameters_monitor().leave(); });
  }
  ParametersGuard(const ParametersGuard&) = delete;
  ParametersGuard& operator=(const ParametersGuard&) = delete;

 private:
  NodeStrand& strand_;
  AutogradContexts& contexts_;
};

}  // namespace

LocalOptimizer::LocalOptimizer(const OptimizerSettings& settings,
                               const std::vector<RRef<at::Tensor>>& parameters)
    : given_(parameters.size()) {
  std::unordered_set<const at::TensorImpl*> seen;
  std::vector<at::Tensor> aliases;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor tensor = parameters[i].local_value();
    if (!tensor.is_leaf())
      throw std::invalid_argument("a parameter is the result of a computation: it has no gradient");
    if (!seen.insert(tensor.unsafeGetTensorImpl()).second) continue;
    parameters_.push_back({tensor, tensor.detach()});
    places_.push_back(i);
    aliases.push_back(parameters_.back().alias);
  }
  optimizer_ = make_optimizer(settings, std::move(aliases));
}

LocalOptimizer::~LocalOptimizer() = default;

void LocalOptimizer::step(CallContext& call) {
  const LeafGradients gradients = get_gradients(call);
  NodeStrand& strand = *call.caller()->strand();
  Status stepped = Unit{};
  {
    const ParametersGuard guard(*call.caller());
    for (Parameter& parameter : parameters_)
      parameter.alias.mutable_grad() = gradients.find(parameter.tensor);
    stepped = run_user_code(strand.name(), "step", [this] { optimizer_->step(); });
    for (Parameter& parameter : parameters_) parameter.alias.mutable_grad().reset();
  }
  strand.post([&strand, id = call.autograd_context()->id,
               step = CausalIdHash{}(strand.running().started_by()),
               text = stepped.ok() ? std::string() : stepped.error().text] {
    strand.trace().on_event({.kind = EventKind::optimizer_stepped,
                             .worker = strand.self(),
                             .id = id,
                             .number = step,
                             .text = text});
  });
  std::move(stepped).or_throw();
}

std::vector<at::Tensor> LocalOptimizer::gradient_norms(CallContext& call) {
  const LeafGradients gradients = get_gradients(call);
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> norms(given_);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor gradient = gradients.find(parameters_[i].tensor);
    if (gradient.defined()) norms[places_[i]] = gradient.norm(2);
  }
  return norms;
}

void LocalOptimizer::scale_gradients(CallContext& call, const at::Tensor& factor) {
  const LeafGradients gradients = get_gradients(call);
  const ParametersGuard guard(*call.caller());
  const at::NoGradGuard no_grad;
  for (const Parameter& parameter : parameters_) {
    at::Tensor gradient = gradients.find(parameter.tensor);
    if (gradient.defined()) gradient.mul_(factor.to(gradient.device()));
  }
}

void LocalOptimizer::register_in(FunctionRegistry& registry) {
  registry.type<LocalOptimizer>("rehearsal.LocalOptimizer")
      .constructor<OptimizerSettings, std::vector<RRef<at::Tensor>>>()
      .method("step", &LocalOptimizer::step)
      .method("gradient_norms", &LocalOptimizer::gradient_norms)
      .method("scale_gradients", &LocalOptimizer::scale_gradients);
}

}  // namespace rehearsal
