#include "core/optim/local_optimizer.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <stdexcept>

#include "core/api/autograd_context.h"
#include "core/base/user_code.h"
#include "core/functions/function_registry.h"
#include "core/optim/libtorch_kinds.h"
#include "core/optim/parameters_guard.h"

namespace rehearsal {
namespace {

[[noreturn]] void throw_without_gradients(const CallContext& call, size_t parameters) {
  const std::string owner = call.worker_info().name;
  const std::string which = parameters == 1 ? "the parameter" : "none of the parameters";
  throw RpcError({.kind = ErrorKind::autograd,
                  .text = which + " of '" + owner + "' has " + (parameters == 1 ? "no" : "a") +
                          " gradient in autograd context " +
                          to_string(call.autograd_context()->id) +
                          ": was backward called in it, and what it used called in it? If a step "
                          "may use other owners only: allow_owners_without_gradients()",
                  .worker = owner,
                  .function = "step"});
}

// Multiplies a gradient in place, as PyTorch's gradient scaler does. Whether all was finite.
bool unscale(const at::Tensor& gradient, double factor) {
  const at::Tensor elements = gradient.is_sparse() ? gradient._values() : gradient;
  const auto options = elements.options().dtype(at::kFloat);
  at::Tensor found = at::zeros({1}, options);
  at::_amp_foreach_non_finite_check_and_unscale_({elements}, found, at::full({1}, factor, options));
  return found.item<float>() == 0;
}

const OptimizerKind* kind_of(const OptimizerSettings& settings) {
  if (settings.own.empty()) return &libtorch_kind_named(settings.kind);
  return settings.own.front().local_value().kind;
}

}  // namespace

LocalOptimizer::LocalOptimizer(const CallContext& call, const OptimizerSettings& settings)
    : mutants_(call.references()->mutants()), kind_(kind_of(settings)), accumulated_(mutants_) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (const SentGroup& group : settings.groups) {
    std::vector<at::Tensor> aliases;
    add_parameters(group, aliases);
    groups.emplace_back(std::move(aliases), kind_->read(group.options.bytes));
    groups_.push_back(group.options.group);
  }
  optimizer_ = kind_->make(groups, *kind_->read(settings.defaults));
}

LocalOptimizer::~LocalOptimizer() = default;

void LocalOptimizer::add_parameters(const SentGroup& group, std::vector<at::Tensor>& aliases) {
  const auto begins = static_cast<std::ptrdiff_t>(parameters_.size());
  for (const RRef<at::Tensor>& reference : group.parameters) {
    const size_t place = given_++;
    const at::Tensor tensor = value_of(reference);
    if (!tensor.is_leaf())
      throw std::invalid_argument("a parameter is the result of a computation: it has no gradient");
    const auto same = [&](const Parameter& known) { return known.tensor.is_same(tensor); };
    const auto known = std::find_if(parameters_.begin(), parameters_.end(), same);
    if (known - parameters_.begin() < begins)
      throw std::invalid_argument("a parameter is in two groups of an optimizer");
    if (known != parameters_.end() && !mutants_.on(Mutant::parameter_stepped_twice)) continue;
    parameters_.push_back({tensor, tensor.detach()});
    places_.push_back(place);
    aliases.push_back(parameters_.back().alias);
  }
}

at::Tensor LocalOptimizer::value_of(const RRef<at::Tensor>& reference) {
  Streams streams;
  const HeldValue held =
      detail::await_local_value(*reference.shared_handle(), typeid(at::Tensor), &streams);
  const auto same = [&](const Streams& known) { return known->streams() == streams->streams(); };
  if (mutants_.on(Mutant::step_beside_other_uses))
    return *static_cast<const at::Tensor*>(held.value.get());
  if (streams != nullptr && std::none_of(streams_.begin(), streams_.end(), same))
    streams_.push_back(streams);
  return *static_cast<const at::Tensor*>(held.value.get());
}

BesideStreams LocalOptimizer::beside_parameters(const CallContext& call) const {
  return {call.caller()->strand()->devices(), streams_};
}

// ---- gradients ----------------------------------------------------------------------

bool LocalOptimizer::has_gradient(const LeafGradients& gradients) const {
  if (mutants_.on(Mutant::missing_gradients_ignored)) return true;
  return std::any_of(parameters_.begin(), parameters_.end(), [&](const Parameter& parameter) {
    return gradients.find(parameter.tensor).defined();
  });
}

// Parks. Of all leaves of this worker; none if the order uses no context.
LeafGradients LocalOptimizer::context_gradients(CallContext& call, const OrderName& order) const {
  if (!order.uses_context) return {};
  return get_gradients(call);
}

// Readers of the gradients of the call's context come, from now on, after all that the calling
// code has given to devices.
void let_context_follow(const CallContext& call) {
  NodeStrand& strand = *call.caller()->strand();
  const Streams here = StreamSet::current(strand.devices());
  if (here == nullptr || !call.autograd_context()) return;
  if (strand.mutants().on(Mutant::changed_gradients_read_early)) return;
  strand.post([here, &contexts = call.caller()->contexts(), context = *call.autograd_context()] {
    if (const Streams streams = contexts.streams_of(context)) streams->after(*here);
  });
}

// The context has these gradients from now on. The sum of several passes is made anew for each who
// asks, so that changes of it have to be given back.
void LocalOptimizer::give_back(const CallContext& call, const OrderName& order,
                               const LeafGradients& of_context) const {
  if (!order.uses_context || mutants_.on(Mutant::changed_gradients_not_kept)) return;
  call.caller()->strand()->post(
      [&contexts = call.caller()->contexts(), context = *call.autograd_context(), of_context] {
        // Nobody has any use for those of a context that has ended.
        static_cast<void>(contexts.replace_gradients(context, of_context));
      });
}

// From here on nothing parks. The gradients that the order means.
LeafGradients LocalOptimizer::begin(const OrderName& order, const LeafGradients& of_context) {
  if (order.place() < latest_ && !mutants_.on(Mutant::overtaken_order_obeyed))
    throw std::logic_error("a call of an optimizer was overtaken by a later one, and is void");
  latest_ = order.place();
  accumulated_.settle(order);
  if (accumulated_.sum().empty()) return of_context;
  LeafGradients gradients = accumulated_.sum();
  gradients.add_all(of_context);
  return gradients;
}

void LocalOptimizer::accumulate(CallContext& call, const OrderName& order) {
  const LeafGradients of_context = context_gradients(call, order);
  if (!has_gradient(of_context) && !order.allows_no_gradients)
    throw_without_gradients(call, parameters_.size());
  static_cast<void>(begin(order, {}));
  LeafGradients own;
  for (const Parameter& parameter : parameters_) {
    const at::Tensor gradient = of_context.find(parameter.tensor);
    if (gradient.defined()) own.accumulate({parameter.tensor, gradient.detach().clone()});
  }
  accumulated_.keep_term(order, std::move(own));
}

std::vector<at::Tensor> LocalOptimizer::gradient_norms(CallContext& call, const OrderName& order) {
  const LeafGradients gradients = begin(order, context_gradients(call, order));
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> norms(given_);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor gradient = gradients.find(parameters_[i].tensor);
    if (gradient.defined()) norms[places_[i]] = gradient.norm(2);
  }
  return norms;
}

// `change` changes one gradient in place.
template <class Change>
void LocalOptimizer::change_gradients(CallContext& call, const OrderName& order, Change change) {
  const LeafGradients of_context = context_gradients(call, order);
  const ParametersGuard guard(*call.caller());
  const LeafGradients gradients = begin(order, of_context);
  const at::NoGradGuard no_grad;
  for (const Parameter& parameter : parameters_) {
    const at::Tensor gradient = gradients.find(parameter.tensor);
    if (gradient.defined()) change(gradient);
  }
  give_back(call, order, of_context);
  let_context_follow(call);
}

void LocalOptimizer::scale_gradients(CallContext& call, const OrderName& order,
                                     const at::Tensor& factor) {
  change_gradients(call, order, [&](const at::Tensor& gradient) {
    gradient.mul_(factor.to(gradient.device()));
  });
}

void LocalOptimizer::clamp_gradients(CallContext& call, const OrderName& order, double bound) {
  change_gradients(call, order,
                   [&](const at::Tensor& gradient) { gradient.clamp_(-bound, bound); });
}

bool LocalOptimizer::unscale_gradients(CallContext& call, const OrderName& order, double factor) {
  const LeafGradients of_context = context_gradients(call, order);
  const ParametersGuard guard(*call.caller());
  const LeafGradients gradients = begin(order, of_context);
  if (unscaled_ == order.number && !mutants_.on(Mutant::unscaled_again)) return unscaled_finite_;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> found;
  for (const Parameter& parameter : parameters_) {
    found.push_back(gradients.find(parameter.tensor));
    if (found.back().defined() && found.back().scalar_type() == at::kHalf)
      throw std::invalid_argument(
          "a gradient has 16-bit elements: parameters keep 32 bits in mixed precision");
  }
  unscaled_ = order.number;
  unscaled_finite_ = true;
  for (const at::Tensor& gradient : found)
    if (gradient.defined() && !unscale(gradient, factor)) unscaled_finite_ = false;
  give_back(call, order, of_context);
  let_context_follow(call);
  return unscaled_finite_;
}

// ---- steps --------------------------------------------------------------------------

void LocalOptimizer::step(CallContext& call, const OrderName& order,
                          const std::vector<SentOptions>& changed) {
  const LeafGradients of_context = context_gradients(call, order);
  if (order.uses_context && !has_gradient(of_context) && !order.allows_no_gradients)
    throw_without_gradients(call, parameters_.size());
  const ParametersGuard guard(*call.caller());
  const LeafGradients gradients = begin(order, of_context);
  for (const SentOptions& options : changed) {
    const auto group = std::find(groups_.begin(), groups_.end(), options.group) - groups_.begin();
    optimizer_->param_groups()
        .at(static_cast<size_t>(group))
        .set_options(kind_->read(options.bytes));
  }
  apply_step(call, order, gradients);
}

void LocalOptimizer::apply_step(CallContext& call, const OrderName& order,
                                const LeafGradients& gradients) {
  NodeStrand& strand = *call.caller()->strand();
  const BesideStreams after_all_uses = beside_parameters(call);
  stepped_ = order.number;
  const bool stale = mutants_.on(Mutant::stale_gradient_stepped);
  for (Parameter& parameter : parameters_) {
    const at::Tensor gradient = gradients.find(parameter.tensor);
    if (gradient.defined() || !stale) parameter.alias.mutable_grad() = gradient;
  }
  Status stepped = run_user_code(strand.name(), "step", [this] { optimizer_->step(); });
  for (Parameter& parameter : parameters_)
    if (!stale) parameter.alias.mutable_grad().reset();
  stepped_whole_ = stepped.ok();
  if (stepped.ok()) accumulated_.forget();
  if (!stepped.ok()) stepped.error().text += "; some of its parameters may have changed";
  AutogradContextId id;
  if (order.uses_context) id = call.autograd_context()->id;
  strand.post([&strand, id, step = CausalIdHash{}(strand.running().started_by()),
               text = stepped.ok() ? std::string() : stepped.error().text] {
    strand.trace().on_event({.kind = EventKind::optimizer_stepped,
                             .worker = strand.self(),
                             .id = id,
                             .number = step,
                             .text = text});
  });
  std::move(stepped).or_throw();
}

StepState LocalOptimizer::step_state(const OrderName& order) {
  static_cast<void>(begin(order, {}));
  if (stepped_ != order.number) return StepState::not_applied;
  return stepped_whole_ ? StepState::applied : StepState::halfway;
}

void LocalOptimizer::register_in(FunctionRegistry& registry) {
  registry.type<LocalOptimizer>("rehearsal.LocalOptimizer")
      .constructor<CallContext&, OptimizerSettings>()
      .method("step", &LocalOptimizer::step)
      .method("step_state", &LocalOptimizer::step_state)
      .method("accumulate", &LocalOptimizer::accumulate)
      .method("gradient_norms", &LocalOptimizer::gradient_norms)
      .method("scale_gradients", &LocalOptimizer::scale_gradients)
      .method("clamp_gradients", &LocalOptimizer::clamp_gradients)
      .method("unscale_gradients", &LocalOptimizer::unscale_gradients);
}

}  // namespace rehearsal
