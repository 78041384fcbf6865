#include "scenarios/storm/training.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>

#include "scenarios/storm/actor.h"

namespace rehearsal::storm {
namespace {

using torch::optim::Optimizer;
using torch::optim::OptimizerOptions;
using torch::optim::OptimizerParamGroup;

constexpr int kAttempts = 11;

// One of LibTorch's optimizers.
struct Kind {
  std::unique_ptr<OptimizerOptions> (*options)(double rate);
  std::unique_ptr<Optimizer> (*make)(const std::vector<OptimizerParamGroup>& groups,
                                     const OptimizerOptions& defaults);
};

template <class Made, class Options>
Kind kind_of() {
  return {[](double rate) -> std::unique_ptr<OptimizerOptions> {
            return std::make_unique<Options>(rate);
          },
          [](const std::vector<OptimizerParamGroup>& groups,
             const OptimizerOptions& defaults) -> std::unique_ptr<Optimizer> {
            return std::make_unique<Made>(groups, static_cast<const Options&>(defaults));
          }};
}

Kind sgd_with_momentum() {
  Kind kind = kind_of<torch::optim::SGD, torch::optim::SGDOptions>();
  kind.options = [](double rate) -> std::unique_ptr<OptimizerOptions> {
    return std::make_unique<torch::optim::SGDOptions>(torch::optim::SGDOptions(rate).momentum(0.9));
  };
  return kind;
}

Kind drawn_kind(Dice& dice) {
  switch (dice.draw(5)) {
    case 0:
      return kind_of<torch::optim::Adam, torch::optim::AdamOptions>();
    case 1:
      return kind_of<torch::optim::AdamW, torch::optim::AdamWOptions>();
    case 2:
      return kind_of<torch::optim::Adagrad, torch::optim::AdagradOptions>();
    case 3:
      return kind_of<torch::optim::RMSprop, torch::optim::RMSpropOptions>();
    default:
      return sgd_with_momentum();
  }
}

double drawn_rate(Dice& dice) { return static_cast<double>(1 + dice.draw(100)) / 1000; }

// Three numbers between -1 and 1.
at::Tensor drawn_numbers(Dice& dice) {
  at::Tensor numbers = at::empty({3});
  for (int64_t i = 0; i < 3; ++i) numbers[i] = (static_cast<double>(dice.draw(2048)) - 1024) / 1024;
  return numbers;
}

}  // namespace

at::Tensor numbers_of(uint64_t word) {
  Dice dice(Seed{word}, hash_text("parameter"));
  return drawn_numbers(dice);
}

at::Tensor drawn_parameter(CallContext& context, uint64_t word) {
  return placed(context, word, numbers_of(word)).set_requires_grad(true);
}

at::Tensor times_parameter(const at::Tensor& x, const RRef<at::Tensor>& parameter) {
  const at::Tensor& here = parameter.local_value();
  return x.to(here.device()) * here;
}

double gradient_norm(CallContext& context, const RRef<at::Tensor>& parameter) {
  const at::Tensor gradient = get_gradients(context).find(parameter.local_value());
  return gradient.defined() ? gradient.norm().item<double>() : 0;
}

int64_t parameter_holders(const RRef<at::Tensor>& parameter) {
  return static_cast<int64_t>(parameter.local_value().use_count());
}

void register_training(FunctionRegistry& registry) {
  registry.function("drawn_parameter", &drawn_parameter)
      .function("times_parameter", &times_parameter)
      .function("gradient_norm", &gradient_norm)
      .function("parameter_holders", &parameter_holders);
}

Training::Training(Worker& worker, Dice& dice) : worker_(worker), dice_(dice) {
  make_optimizers();
  owners_may_lack_gradients_ = dice.happens(40);
  optimizer_->allow_owners_without_gradients(owners_may_lack_gradients_);
  if (dice.happens(30)) {
    schedule_.emplace(optimizer_->groups(), 1, 0.5);
    twin_schedule_.emplace(*twin_, 1, 0.5);
  }
  // Its scales are powers of two: no bit of a gradient depends on them.
  if (dice.happens(40))
    scaler_.emplace(DistributedGradScaler::Options{.init_scale = 4, .growth_interval = 1});
  // About what a step takes on a fast network, or longer. On devices what was given up may read a
  // parameter while a later step changes it.
  const bool hurries = dice.happens(50);
  if (hurries && worker.device_count() == 0)
    patience_ = std::chrono::microseconds((100 + dice.draw(900)) << (dice.happens(50) ? 0 : 5));
}

void Training::make_optimizers() {
  const Kind kind = drawn_kind(dice_);
  std::vector<ParameterGroup> groups;
  std::vector<OptimizerParamGroup> twin_groups;
  for (uint64_t left = 1 + dice_.draw(2); left > 0; --left) {
    ParameterGroup group({});
    std::vector<at::Tensor> twins;
    for (uint64_t more = 1 + dice_.draw(3); more > 0; --more) {
      const auto owner = static_cast<uint32_t>(dice_.draw(worker_.workers().size()));
      const uint64_t word = dice_.word();
      parameters_.push_back({.there = worker_.remote(WorkerId{owner}, &drawn_parameter, word),
                             .here = numbers_of(word).set_requires_grad(true)});
      group.parameters.push_back(parameters_.back().there);
      twins.push_back(parameters_.back().here);
    }
    // A parameter counts once, however often it is given.
    if (dice_.happens(30))
      group.parameters.push_back(group.parameters[dice_.draw(group.parameters.size())]);
    const double rate = drawn_rate(dice_);
    group.options = kind.options(rate);
    groups.push_back(std::move(group));
    twin_groups.emplace_back(std::move(twins), kind.options(rate));
  }
  const std::unique_ptr<OptimizerOptions> defaults = kind.options(0.1);
  optimizer_.emplace(worker_, groups, *defaults);
  twin_ = kind.make(twin_groups, *defaults);
}

// ---- gradients ----------------------------------------------------------------------

AutogradContext Training::new_context() const {
  return patience_ ? AutogradContext(worker_.with_timeout(*patience_)) : worker_.autograd_context();
}

std::vector<size_t> Training::drawn_parameters() {
  std::vector<size_t> used;
  const auto has_owner = [&](const WorkerInfo& owner) {
    return std::ranges::any_of(used,
                               [&](size_t i) { return parameters_[i].there.owner() == owner; });
  };
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (dice_.happens(60)) used.push_back(i);
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (used.empty() || (!owners_may_lack_gradients_ && !has_owner(parameters_[i].there.owner())))
      used.push_back(i);
  return used;
}

void Training::differentiate(const AutogradContext& context, const std::vector<size_t>& used,
                             bool overflows) {
  const size_t infinite = used[dice_.draw(used.size())];
  std::vector<at::Tensor> there;
  std::vector<at::Tensor> here;
  {
    const auto recording = context.record();
    for (const size_t i : used) {
      const Trained& parameter = parameters_[i];
      at::Tensor x = drawn_numbers(dice_);
      if (overflows && i == infinite) x = x / 0.0;
      there.push_back(worker_
                          .rpc_sync(parameter.there.owner(), &times_parameter,
                                    placed(worker_, i, x), parameter.there)
                          .pow(2)
                          .sum());
      here.push_back((x * parameter.here).pow(2).sum());
    }
    for (at::Tensor& term : there) term = term.to(there.front().device());
    const at::Tensor loss = at::stack(there).sum();
    context.backward({scaler_ ? scaler_->scale(loss) : loss});
  }
  at::stack(here).sum().backward();
}

bool Training::collect(const Plan& plan, std::optional<AutogradContext>& left) {
  for (uint64_t context = 1; context <= plan.contexts; ++context) {
    left.emplace(new_context());
    const bool last = context == plan.contexts;
    differentiate(*left, drawn_parameters(), last && plan.overflows);
    if (last && !plan.sum_alone) return true;
    if (!in_time([&] { optimizer_->accumulate(*left); })) return false;
    left.reset();
  }
  return true;
}

// A sum that is dropped is part of nothing.
bool Training::drop_a_sum() {
  const AutogradContext context = new_context();
  differentiate(context, drawn_parameters());
  twin_->zero_grad();
  if (!in_time([&] { optimizer_->accumulate(context); })) return false;
  optimizer_->drop_accumulated();
  return true;
}

bool Training::clip(Clip how, const AutogradContext* context) {
  if (how == Clip::none) return true;
  constexpr double kBound = 0.5;
  std::vector<at::Tensor> twins;
  for (const Trained& parameter : parameters_) twins.push_back(parameter.here);
  if (how == Clip::norm)
    (void)torch::nn::utils::clip_grad_norm_(twins, kBound);
  else
    torch::nn::utils::clip_grad_value_(twins, kBound);
  try {
    if (how == Clip::norm)
      (void)(context == nullptr ? optimizer_->clip_grad_norm(kBound)
                                : optimizer_->clip_grad_norm(*context, kBound));
    else if (context == nullptr)
      optimizer_->clip_grad_value(kBound);
    else
      optimizer_->clip_grad_value(*context, kBound);
  } catch (const RpcError& error) {
    if (error.kind() != ErrorKind::timeout || !patience_) throw;
    return false;
  }
  if (worker_.device_count() > 0 && context != nullptr) look_at_gradients(*context);
  return true;
}

// Others read what the optimizer has changed, in streams of their own.
void Training::look_at_gradients(const AutogradContext& context) const {
  for (const Trained& parameter : parameters_)
    (void)context.rpc_sync(parameter.there.owner(), &gradient_norm, parameter.there);
}

// ---- steps --------------------------------------------------------------------------

Training::Plan Training::plan() {
  Plan plan;
  if (dice_.happens(40)) plan.contexts = 2 + dice_.draw(2);
  const uint64_t clip = dice_.draw(5);
  if (clip < 2) plan.clip = clip == 0 ? Clip::norm : Clip::value;
  plan.overflows = scaler_ && dice_.happens(30);
  // Clipping and unscaling take either a context or the sum.
  const bool changes = scaler_ || plan.clip != Clip::none;
  plan.sum_alone = plan.contexts > 1 ? changes || dice_.happens(50) : dice_.happens(15);
  return plan;
}

bool Training::round() {
  twin_->zero_grad();
  if (dice_.happens(40)) change_rate();
  if (dice_.happens(15) && !drop_a_sum()) return false;
  const WorkerId lacking = parameters_[dice_.draw(parameters_.size())].there.owner().id;
  const bool others = std::ranges::any_of(
      parameters_, [&](const Trained& one) { return one.there.owner().id != lacking; });
  if (others && !owners_may_lack_gradients_ && !scaler_ && !patience_ && dice_.happens(30)) {
    step_without_an_owner(lacking);
  } else {
    const Plan how = plan();
    std::optional<AutogradContext> left;
    if (!collect(how, left)) return false;
    const AutogradContext* context = left ? &*left : nullptr;
    const auto unscale = [&] {
      if (context == nullptr)
        scaler_->unscale_(*optimizer_);
      else
        scaler_->unscale_(*optimizer_, *context);
    };
    if (scaler_ && how.clip != Clip::none && !in_time(unscale)) return false;
    if (clip(how.clip, context) && !step(how.overflows, context)) return false;
    if (scaler_) scaler_->update();
  }
  if (schedule_) {
    schedule_->step();
    twin_schedule_->step();
  }
  compare();
  return true;
}

bool Training::step(bool overflows, const AutogradContext* context) {
  bool stepped = true;
  const auto first = [&] {
    if (scaler_)
      stepped =
          context == nullptr ? scaler_->step(*optimizer_) : scaler_->step(*optimizer_, *context);
    else if (context == nullptr)
      optimizer_->step();
    else
      optimizer_->step(*context);
  };
  const auto again = [&] {
    if (scaler_) return first();
    if (context == nullptr)
      optimizer_->retry_step();
    else
      optimizer_->retry_step(*context);
  };
  if (!in_time(first, again)) return false;
  if (stepped == overflows)
    throw WrongResult(stepped ? "a step was taken with what overflowed" : "a step was left out");
  if (!overflows) twin_->step();
  // Owners that have applied it change nothing.
  return scaler_ || !dice_.happens(20) || in_time(again);
}

// It is told, and applied once that is allowed; the others have applied it before.
void Training::step_without_an_owner(WorkerId lacking) {
  std::vector<size_t> used;
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].there.owner().id != lacking) used.push_back(i);
  const AutogradContext context = new_context();
  differentiate(context, used);
  try {
    optimizer_->step(context);
    throw WrongResult("a step succeeded at an owner that had no gradients");
  } catch (const RpcError&) {
  }
  for (const OwnerReport& report : optimizer_->step_reports()) {
    const bool told = report.owner.id == lacking && report.error &&
                      report.error->text.find("gradient in autograd context") != std::string::npos;
    if (report.error && !told) throw RpcError(*report.error);
    if (!report.error && report.owner.id == lacking)
      throw WrongResult("an owner that had no gradients has stepped");
  }
  optimizer_->allow_owners_without_gradients();
  optimizer_->retry_step(context);
  optimizer_->allow_owners_without_gradients(false);
  twin_->step();
}

void Training::change_rate() {
  auto& groups = optimizer_->groups().param_groups();
  const uint64_t group = dice_.draw(groups.size());
  const double rate = drawn_rate(dice_);
  groups[group].options().set_lr(rate);
  twin_->param_groups()[group].options().set_lr(rate);
}

bool Training::in_time(const std::function<void()>& call,
                       const std::function<void()>& again) const {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    try {
      attempt == 0 ? call() : again();
      return true;
    } catch (const RpcError& error) {
      if (error.kind() != ErrorKind::timeout || !patience_) throw;
    }
    // At once, while the attempt is still under way, or a little later.
    if (attempt % 4 == 3) worker_.sleep(*patience_ * attempt * attempt);
  }
  return false;
}

void Training::compare() const {
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (!parameters_[i].there.to_here().cpu().equal(parameters_[i].here))
      throw WrongResult("parameter " + std::to_string(i) + " at '" +
                        parameters_[i].there.owner_name() + "' is not what one process trains");
}

uint64_t Training::digest() const {
  uint64_t digest = 0;
  for (const Trained& parameter : parameters_)
    for (int64_t i = 0; i < parameter.here.numel(); ++i)
      digest = mix(digest, std::bit_cast<uint32_t>(parameter.here[i].item<float>()));
  return digest;
}

void Training::end(bool looks) {
  schedule_.reset();
  optimizer_.reset();
  if (!looks) return;
  const RRef<at::Tensor>& parameter = parameters_[dice_.draw(parameters_.size())].there;
  for (int asked = 0; asked < 100; ++asked) {
    if (worker_.rpc_sync(parameter.owner(), &parameter_holders, parameter) == 1) return;
    // Links may be down for seconds.
    worker_.sleep(std::chrono::milliseconds(10) * (asked + 1));
  }
  throw WrongResult("a parameter is held for an optimizer that is gone");
}

}  // namespace rehearsal::storm
