#include "scenarios/random_training/alone.h"

#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/schedulers/step_lr.h>

#include <memory>
#include <variant>

#include "scenarios/random_training/optimizers.h"

namespace rehearsal::random_training {
namespace {

using torch::optim::OptimizerParamGroup;
using LayerHere = std::variant<std::shared_ptr<Block>, torch::nn::Sequential>;

LayerHere layer_here(const Layer& layer) {
  if (layer.origin == Origin::sequential) return make_sequential(layer.seed);
  return std::make_shared<Block>(layer.seed);
}

std::vector<at::Tensor> parameters_of(const LayerHere& layer) {
  return std::visit([](const auto& module) { return module->parameters(); }, layer);
}

template <class Options>
std::unique_ptr<torch::optim::OptimizerOptions> copy_of(const Options& options) {
  return std::make_unique<Options>(options);
}

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.detach().clone());
  return copies;
}

// Undefined ones are none.
void add(at::Tensor& sum, const at::Tensor& gradient) {
  if (!gradient.defined()) return;
  sum = sum.defined() ? sum + gradient : gradient.clone();
}

class TrainingAlone {
 public:
  explicit TrainingAlone(const Plan& plan)
      : plan_(plan), head_(plan.head_seed), head_optimizer_(head_.parameters(), kHeadRate) {
    for (const Layer& layer : plan.layers) layers_.push_back(layer_here(layer));
    for (const LayerHere& layer : layers_)
      for (const at::Tensor& parameter : parameters_of(layer)) parameters_.push_back(parameter);
    optimizer_ = make_optimizer();
    scheduler_ = std::make_unique<torch::optim::StepLR>(*optimizer_, 1, kLowering);
  }

  Alone run() {
    Alone trained;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      Alone::Step done = step(plan_.steps[i]);
      step_head(i);
      done.chain = copies_of(parameters_);
      done.head = copies_of(head_.parameters());
      trained.steps.push_back(std::move(done));
    }
    return trained;
  }

 private:
  std::unique_ptr<torch::optim::Optimizer> make_optimizer() {
    return with_options(
        plan_.optimizer,
        [this]<class Made>(const auto& all,
                           const auto& of_first) -> std::unique_ptr<torch::optim::Optimizer> {
          if (!plan_.is_grouped)
            return std::make_unique<Made>(std::vector{OptimizerParamGroup(parameters_)}, all);
          const std::vector<at::Tensor> first = parameters_of(layers_.front());
          const std::vector<at::Tensor> rest(
              parameters_.begin() + static_cast<int64_t>(first.size()), parameters_.end());
          std::vector groups{OptimizerParamGroup(first, copy_of(of_first))};
          if (!rest.empty()) groups.emplace_back(rest);
          return std::make_unique<Made>(groups, all);
        });
  }

  Alone::Step step(const Step& step) {
    Alone::Step done;
    std::vector<at::Tensor> sums(parameters_.size());
    for (const Pass& pass : step.passes) {
      optimizer_->zero_grad();
      done.passes.push_back(run_pass(step, pass));
      for (size_t i = 0; i < sums.size(); ++i) add(sums[i], parameters_[i].grad());
    }
    for (size_t i = 0; i < sums.size(); ++i) parameters_[i].mutable_grad() = sums[i];
    if (step.bound == Bound::norm)
      done.norm = torch::nn::utils::clip_grad_norm_(parameters_, kNormMax);
    if (step.bound == Bound::value) torch::nn::utils::clip_grad_value_(parameters_, kValueMax);
    if (!step.overflows) optimizer_->step();
    if (step.lowers_rate) scheduler_->step();
    return done;
  }

  Alone::Pass run_pass(const Step& step, const Pass& pass) {
    at::Tensor value = drawn_input(pass.word);
    for (const size_t layer : step.chain)
      value = std::visit(
          [&](auto& module) -> at::Tensor {
            module->train(!step.is_evaluating[layer]);
            return module->forward(value);
          },
          layers_[layer]);
    const auto losses = losses_of(head_.forward(value), drawn_target(pass.word));
    const at::Tensor loss = losses[0] + losses[1];
    head_optimizer_.zero_grad();
    if (pass.form == PassForm::twice) loss.backward({}, /*retain_graph=*/true);
    loss.backward();
    Alone::Pass done{.loss = loss.item<double>(), .of_head = {}};
    for (const at::Tensor& parameter : head_.parameters()) done.of_head.push_back(parameter.grad());
    return done;
  }

  // The replicas' mean, which they add up in the order of their ranks: of up to three.
  void step_head(size_t step) {
    std::vector<at::Tensor> sums(head_.parameters().size());
    for (size_t trainer = 0; trainer < plan_.trainers; ++trainer) {
      head_optimizer_.zero_grad();
      head_loss(head_, plan_, step, trainer).backward();
      for (size_t i = 0; i < sums.size(); ++i) add(sums[i], head_.parameters()[i].grad());
    }
    for (size_t i = 0; i < sums.size(); ++i)
      head_.parameters()[i].mutable_grad() = sums[i] / static_cast<int64_t>(plan_.trainers);
    head_optimizer_.step();
  }

  const Plan& plan_;
  std::vector<LayerHere> layers_;
  std::vector<at::Tensor> parameters_;
  Head head_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<torch::optim::StepLR> scheduler_;
  torch::optim::SGD head_optimizer_;
};

}  // namespace

Alone train_alone(const Plan& plan) { return TrainingAlone(plan).run(); }

}  // namespace rehearsal::random_training
