#include "core/api/distributed_grad_scaler.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <stdexcept>

#include "core/optim/optimizer_state.h"

namespace rehearsal {

DistributedGradScaler::DistributedGradScaler(const Options& options)
    : options_(options), scale_(static_cast<float>(options.init_scale)) {
  if (options.growth_factor <= 1) throw std::invalid_argument("the growth factor is at most 1");
  if (options.backoff_factor >= 1) throw std::invalid_argument("the backoff factor is at least 1");
}

at::Tensor DistributedGradScaler::scale(const at::Tensor& output) const {
  if (!options_.enabled) return output;
  return output * at::full({}, scale_, output.options().dtype(at::kFloat));
}

DistributedGradScaler::Stage& DistributedGradScaler::stage_of(
    const DistributedOptimizer& optimizer) {
  return stages_[optimizer.state_.get()];
}

void DistributedGradScaler::unscale_(const DistributedOptimizer& optimizer,
                                     const AutogradContext& context) {
  unscale_for(optimizer, &context);
}
void DistributedGradScaler::unscale_(const DistributedOptimizer& optimizer) {
  unscale_for(optimizer, nullptr);
}
bool DistributedGradScaler::step(const DistributedOptimizer& optimizer,
                                 const AutogradContext& context) {
  return step_with(optimizer, &context);
}
bool DistributedGradScaler::step(const DistributedOptimizer& optimizer) {
  return step_with(optimizer, nullptr);
}

void DistributedGradScaler::unscale_for(const DistributedOptimizer& optimizer,
                                        const AutogradContext* context) {
  if (!options_.enabled) return;
  Stage& stage = stage_of(optimizer);
  if (stage.stepping) throw std::logic_error("unscale_ was called after step");
  if (stage.unscaled)
    throw std::logic_error("unscale_ was called for this optimizer since the last update");
  const auto inverse = static_cast<float>(1.0 / static_cast<double>(scale_));
  stage.finite = optimizer.unscale(context, inverse, stage.unscaling);
  stage.unscaled = true;
}

bool DistributedGradScaler::step_with(const DistributedOptimizer& optimizer,
                                      const AutogradContext* context) {
  if (!options_.enabled) {
    if (context == nullptr)
      optimizer.step();
    else
      optimizer.step(*context);
    return true;
  }
  Stage& stage = stage_of(optimizer);
  if (stage.stepped)
    throw std::logic_error("step was called for this optimizer since the last update");
  if (!stage.unscaled) unscale_for(optimizer, context);
  const bool again = stage.stepping;
  stage.stepping = true;
  if (!stage.finite)
    optimizer.drop_accumulated();
  else if (again)
    optimizer.retry_with(context);
  else
    optimizer.step_with(context);
  stage.stepped = true;
  return stage.finite;
}

void DistributedGradScaler::update() {
  if (!options_.enabled) return;
  const auto unscaled = [](const auto& entry) { return entry.second.unscaled; };
  if (std::none_of(stages_.begin(), stages_.end(), unscaled))
    throw std::logic_error("no gradients were looked at since the last update");
  const bool finite = std::all_of(stages_.begin(), stages_.end(),
                                  [](const auto& entry) { return entry.second.finite; });
  at::Tensor scale = at::full({1}, scale_, at::kFloat);
  at::Tensor tracker = at::full({1}, growth_tracker_, at::kInt);
  at::_amp_update_scale_(scale, tracker, at::full({1}, finite ? 0.0 : 1.0, at::kFloat),
                         options_.growth_factor, options_.backoff_factor, options_.growth_interval);
  scale_ = scale.item<float>();
  growth_tracker_ = tracker.item<int32_t>();
  stages_.clear();
}

double DistributedGradScaler::get_scale() const { return options_.enabled ? scale_ : 1.0; }

DistributedGradScaler::State DistributedGradScaler::state() const {
  return {.scale = scale_, .growth_tracker = growth_tracker_};
}

void DistributedGradScaler::load(const State& state) {
  scale_ = static_cast<float>(state.scale);
  growth_tracker_ = state.growth_tracker;
}

}  // namespace rehearsal
