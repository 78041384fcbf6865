#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>

#include "core/api/distributed_optimizer.h"

namespace rehearsal {

// The scale of the loss in mixed precision, as PyTorch's torch.amp.GradScaler: gradients of few
// bits stay away from zero, and a step whose gradients overflowed is left out. All owners of an
// optimizer's parameters agree: if one has an infinite or undefined gradient, none steps.
//
//   context.backward({scaler.scale(loss)});
//   scaler.unscale_(optimizer, context);          // only if gradients are clipped:
//   optimizer.clip_grad_norm(context, 1.0);
//   scaler.step(optimizer, context);
//   scaler.update();
//
// Of the worker that steps. Without a context the gradients are those that were accumulated.
class DistributedGradScaler {
 public:
  struct Options {
    double init_scale = 65536;
    double growth_factor = 2;
    double backoff_factor = 0.5;
    int64_t growth_interval = 2000;  // steps without an overflow, after which the scale grows
    bool enabled = true;             // false: all gradients are as they are
  };

  // The part that changes: to be kept with a checkpoint.
  struct State {
    double scale = 0;
    int64_t growth_tracker = 0;
    friend void describe(State& state, auto&& fields) { fields(state.scale, state.growth_tracker); }
  };

  // Throws std::invalid_argument for a growth of 1 or less, and a backoff of 1 or more.
  explicit DistributedGradScaler(const Options& options);
  DistributedGradScaler() : DistributedGradScaler(Options()) {}

  // The loss, or another root, times the scale.
  [[nodiscard]] at::Tensor scale(const at::Tensor& output) const;

  // Divides the gradients of all owners by the scale. Called once before a step, by hand or by
  // `step`; after an RpcError again: each owner does it once. Throws std::logic_error if it was
  // done, or the step was. Parks.
  void unscale_(const DistributedOptimizer& optimizer, const AutogradContext& context);
  void unscale_(const DistributedOptimizer& optimizer);

  // A step, unless a gradient is infinite or NaN at some owner: whether there was one. After an
  // RpcError it can be called again: that is retry_step. Throws std::logic_error if it is done.
  // Parks.
  bool step(const DistributedOptimizer& optimizer, const AutogradContext& context);
  bool step(const DistributedOptimizer& optimizer);

  // The scale of the next iteration, from what the steps since the last update have found: smaller
  // if one overflowed, larger after growth_interval without. Throws std::logic_error if there was
  // none.
  void update();

  [[nodiscard]] double get_scale() const;
  [[nodiscard]] bool is_enabled() const { return options_.enabled; }
  [[nodiscard]] State state() const;
  void load(const State& state);

 private:
  // How far an optimizer has come since the last update.
  struct Stage {
    uint64_t unscaling = 0;  // its order; zero: none
    bool unscaled = false;
    bool finite = true;
    bool stepping = false;
    bool stepped = false;
  };
  Stage& stage_of(const DistributedOptimizer& optimizer);
  void unscale_for(const DistributedOptimizer& optimizer, const AutogradContext* context);
  bool step_with(const DistributedOptimizer& optimizer, const AutogradContext* context);

  Options options_;
  float scale_ = 0;
  int64_t growth_tracker_ = 0;
  std::map<const void*, Stage> stages_;  // look-up only, but for what holds of all
};

}  // namespace rehearsal
