#include "core/api/distributed_optimizer.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <numeric>
#include <optional>
#include <stdexcept>

#include "core/optim/libtorch_kinds.h"
#include "core/optim/optimizer_state.h"

namespace rehearsal {

DistributedOptimizer::DistributedOptimizer(const Calls& worker,
                                           const std::vector<RRef<at::Tensor>>& parameters,
                                           const torch::optim::OptimizerOptions& options)
    : DistributedOptimizer(worker, std::vector<ParameterGroup>{ParameterGroup(parameters)},
                           options) {}

DistributedOptimizer::DistributedOptimizer(const Calls& worker,
                                           const std::vector<ParameterGroup>& groups,
                                           const torch::optim::OptimizerOptions& defaults) {
  const LibtorchKind known = libtorch_kind_of(defaults);
  state_ = std::make_unique<State>(worker, groups, defaults, *known.kind);
  state_->create(worker, groups, {.kind = known.name, .defaults = known.kind->write(defaults)},
                 nullptr);
}

DistributedOptimizer::DistributedOptimizer(const Calls& worker,
                                           const std::vector<ParameterGroup>& groups,
                                           const torch::optim::OptimizerOptions& defaults,
                                           OwnKind kind)
    : state_(std::make_unique<State>(worker, groups, defaults, *kind.kind)) {
  state_->create(worker, groups, {.kind = {}, .defaults = kind.kind->write(defaults)}, &kind);
}

DistributedOptimizer::~DistributedOptimizer() = default;
DistributedOptimizer::DistributedOptimizer(DistributedOptimizer&&) noexcept = default;
DistributedOptimizer& DistributedOptimizer::operator=(DistributedOptimizer&&) noexcept = default;

void DistributedOptimizer::allow_owners_without_gradients(bool allowed) {
  state_->allows_no_gradients = allowed;
}

const std::vector<OwnerReport>& DistributedOptimizer::step_reports() const {
  return state_->reports;
}

torch::optim::Optimizer& DistributedOptimizer::groups() const { return state_->groups; }

// ---- steps --------------------------------------------------------------------------

void DistributedOptimizer::step(const AutogradContext& context) const { step_with(&context); }
void DistributedOptimizer::step() const {
  state_->check_source(nullptr);
  step_with(nullptr);
}
void DistributedOptimizer::retry_step(const AutogradContext& context) const {
  retry_with(&context);
}
void DistributedOptimizer::retry_step() const { retry_with(nullptr); }

void DistributedOptimizer::step_with(const AutogradContext* context) const {
  State& state = *state_;
  std::vector<std::string> options = state.options_now();
  const OrderName order = state.next_order(context);
  state.step = State::Step{.order = order, .context = {}, .options = std::move(options)};
  if (context != nullptr) state.step->context = context->id();
  state.end_accumulation();
  state.reports.clear();
  for (const OwnerShare& share : state.shares)
    state.reports.push_back(
        {.owner = share.owner,
         .error = Error{.kind = ErrorKind::cancelled, .text = "there was no answer yet"}});
  std::vector<size_t> everybody(state.shares.size());
  std::iota(everybody.begin(), everybody.end(), 0);
  state.step_at(everybody, context);
  state.throw_unless_stepped();
}

void DistributedOptimizer::retry_with(const AutogradContext* context) const {
  State& state = *state_;
  if (!state.step) throw std::logic_error("the last call of the optimizer was no step");
  if (state.step->context != (context == nullptr ? std::nullopt : std::optional(context->id())))
    throw std::logic_error("the last step was one with other gradients");
  ++state.step->order.attempt;
  state.step->order.allows_no_gradients = state.allows_no_gradients;
  state.step_at(state.owners_left(context), context);
  state.throw_unless_stepped();
}

void DistributedOptimizer::accumulate(const AutogradContext& context) const {
  const OrderName order = state_->next_order(&context);
  (void)state_->ask_all<Unit>(
      "the accumulation of gradients", &context, [&](const Calls& calls, const OwnerShare& share) {
        return calls.rpc_async(share.optimizer, &LocalOptimizer::accumulate, order);
      });
  state_->last_term = order.number;
}

void DistributedOptimizer::drop_accumulated() const {
  (void)state_->next_order(nullptr);
  state_->end_accumulation();
}

// ---- gradients ----------------------------------------------------------------------

double DistributedOptimizer::clip_grad_norm(const AutogradContext& context, double max_norm) const {
  return clip_norm_of(&context, max_norm);
}
double DistributedOptimizer::clip_grad_norm(double max_norm) const {
  return clip_norm_of(nullptr, max_norm);
}
void DistributedOptimizer::clip_grad_value(const AutogradContext& context, double max_value) const {
  clip_value_of(&context, max_value);
}
void DistributedOptimizer::clip_grad_value(double max_value) const {
  clip_value_of(nullptr, max_value);
}

double DistributedOptimizer::clip_norm_of(const AutogradContext* context, double max_norm) const {
  State& state = *state_;
  state.check_source(context);
  OrderName order = state.next_order(context);
  const auto parts = state.ask_all<std::vector<at::Tensor>>(
      "the norms of the gradients", context, [&](const Calls& calls, const OwnerShare& share) {
        return calls.rpc_async(share.optimizer, &LocalOptimizer::gradient_norms, order);
      });

  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> by_position(state.parameter_count);
  const size_t owners = state.mutants.on(Mutant::clip_norm_of_one_owner) ? 1 : state.shares.size();
  for (size_t i = 0; i < owners; ++i)
    for (size_t j = 0; j < state.shares[i].positions.size(); ++j)
      by_position[state.shares[i].positions[j]] = parts[i].at(j);
  std::vector<at::Tensor> norms;
  for (const at::Tensor& norm : by_position)
    if (norm.defined()) norms.push_back(norm.cpu());
  if (norms.empty()) return 0;

  const at::Tensor total = norms.size() == 1 ? norms.front() : at::stack(norms).norm(2);
  const at::Tensor factor = at::clamp(max_norm / (total + 1e-6), std::nullopt, 1.0);
  if (factor.item<double>() != 1.0) {
    order = state.next_order(context);
    (void)state.ask_all<Unit>(
        "the scaling of the gradients", context, [&](const Calls& calls, const OwnerShare& share) {
          return calls.rpc_async(share.optimizer, &LocalOptimizer::scale_gradients, order, factor);
        });
  }
  return total.item<double>();
}

void DistributedOptimizer::clip_value_of(const AutogradContext* context, double max_value) const {
  state_->check_source(context);
  const OrderName order = state_->next_order(context);
  (void)state_->ask_all<Unit>(
      "the clipping of the gradients", context, [&](const Calls& calls, const OwnerShare& share) {
        return calls.rpc_async(share.optimizer, &LocalOptimizer::clamp_gradients, order, max_value);
      });
}

bool DistributedOptimizer::unscale(const AutogradContext* context, double factor,
                                   uint64_t& number) const {
  state_->check_source(context);
  if (number != 0 && number != state_->number)
    throw std::logic_error("the gradients were used since their scale was half removed");
  if (number != 0) --state_->number;  // The same order again.
  const OrderName order = state_->next_order(context);
  number = order.number;
  bool finite = true;
  for (const bool here : state_->ask_all<bool>(
           "the unscaling of the gradients", context,
           [&](const Calls&calls, const OwnerShare&share) {
             return calls.rpc_async(share.optimizer, &LocalOptimizer::unscale_gradients, order,
                                    factor);
           }))
    finite = (finite || state_->mutants.on(Mutant::overflow_not_agreed)) && here;
  return finite;
}

void register_optimizer(FunctionRegistry& registry) { LocalOptimizer::register_in(registry); }

}  // namespace rehearsal
