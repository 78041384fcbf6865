#pragma once

#include <torch/optim/optimizer.h>

#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>

#include "core/api/own_optimizer.h"

// Optimizers that LibTorch does not have, as a program would write them.
namespace rehearsal::own_optimizers {

using torch::optim::OptimizerCloneableOptions;
using torch::optim::OptimizerCloneableParamState;
using torch::optim::OptimizerParamGroup;

struct AdamaxOptions : OptimizerCloneableOptions<AdamaxOptions> {
  explicit AdamaxOptions(double rate = 2e-3) : lr(rate) {}
  double get_lr() const override { return lr; }
  void set_lr(const double rate) override { lr = rate; }
  friend void describe(AdamaxOptions& options, auto&& fields) {
    fields(options.lr, options.beta1, options.beta2, options.eps);
  }
  double lr;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
};

struct AdamaxState : OptimizerCloneableParamState<AdamaxState> {
  at::Tensor average;
  at::Tensor bound;
  int64_t step = 0;
};

class Adamax : public torch::optim::Optimizer {
 public:
  Adamax(const std::vector<OptimizerParamGroup>& groups, const AdamaxOptions& defaults)
      : Optimizer(groups, std::make_unique<AdamaxOptions>(defaults)) {}

  at::Tensor step(LossClosure = nullptr) override {
    const at::NoGradGuard no_grad;
    for (OptimizerParamGroup& group : param_groups_)
      for (const at::Tensor& parameter : group.params())
        if (parameter.grad().defined())
          update(parameter, static_cast<const AdamaxOptions&>(group.options()));
    return {};
  }

 private:
  void update(const at::Tensor& parameter, const AdamaxOptions& options) {
    auto& kept = state_[parameter.unsafeGetTensorImpl()];
    if (kept == nullptr) {
      auto fresh = std::make_unique<AdamaxState>();
      fresh->average = at::zeros_like(parameter);
      fresh->bound = at::zeros_like(parameter);
      kept = std::move(fresh);
    }
    auto& state = static_cast<AdamaxState&>(*kept);
    ++state.step;
    state.average.lerp_(parameter.grad(), 1 - options.beta1);
    state.bound = at::maximum(state.bound * options.beta2, parameter.grad().abs().add(options.eps));
    const double correction = 1 - std::pow(options.beta1, static_cast<double>(state.step));
    at::Tensor changed = parameter;
    changed.addcdiv_(state.average, state.bound, -options.lr / correction);
  }
};

struct RpropOptions : OptimizerCloneableOptions<RpropOptions> {
  explicit RpropOptions(double rate = 1e-2) : lr(rate) {}
  double get_lr() const override { return lr; }
  void set_lr(const double rate) override { lr = rate; }
  friend void describe(RpropOptions& options, auto&& fields) {
    fields(options.lr, options.shrink, options.grow, options.fails_at);
  }
  double lr;
  double shrink = 0.5;
  double grow = 1.2;
  int64_t fails_at = 0;  // the step at which it throws, after the first parameter; zero: never
};

struct RpropState : OptimizerCloneableParamState<RpropState> {
  at::Tensor before;
  at::Tensor size;
};

class Rprop : public torch::optim::Optimizer {
 public:
  Rprop(const std::vector<OptimizerParamGroup>& groups, const RpropOptions& defaults)
      : Optimizer(groups, std::make_unique<RpropOptions>(defaults)) {}

  at::Tensor step(LossClosure = nullptr) override {
    const at::NoGradGuard no_grad;
    ++steps_;
    for (OptimizerParamGroup& group : param_groups_) {
      const auto& options = static_cast<const RpropOptions&>(group.options());
      for (const at::Tensor& parameter : group.params()) {
        if (!parameter.grad().defined()) continue;
        update(parameter, options);
        if (steps_ == options.fails_at) throw std::runtime_error("the optimizer is out of order");
      }
    }
    return {};
  }

 private:
  void update(const at::Tensor& parameter, const RpropOptions& options) {
    auto& kept = state_[parameter.unsafeGetTensorImpl()];
    if (kept == nullptr) {
      auto fresh = std::make_unique<RpropState>();
      fresh->before = at::zeros_like(parameter);
      fresh->size = at::full_like(parameter, options.lr);
      kept = std::move(fresh);
    }
    auto& state = static_cast<RpropState&>(*kept);
    const at::Tensor turns = (parameter.grad() * state.before).sign();
    state.size = at::where(turns.gt(0), state.size * options.grow,
                           at::where(turns.lt(0), state.size * options.shrink, state.size));
    const at::Tensor gradient = at::where(turns.lt(0), at::zeros_like(parameter), parameter.grad());
    at::Tensor changed = parameter;
    changed.sub_(gradient.sign() * state.size);
    state.before = gradient.clone();
  }

  int64_t steps_ = 0;
};

// Its constructor throws.
class Unmakeable : public torch::optim::Optimizer {
 public:
  Unmakeable(const std::vector<OptimizerParamGroup>& groups, const RpropOptions& defaults)
      : Optimizer(groups, std::make_unique<RpropOptions>(defaults)) {
    throw std::runtime_error("Error creating optimizer.");
  }
  at::Tensor step(LossClosure = nullptr) override { return {}; }
};

inline void register_own_optimizers(FunctionRegistry& registry) {
  register_optimizer_type<Adamax, AdamaxOptions>(registry, "Adamax");
  register_optimizer_type<Rprop, RpropOptions>(registry, "Rprop");
  register_optimizer_type<Unmakeable, RpropOptions>(registry, "Unmakeable");
}

}  // namespace rehearsal::own_optimizers
