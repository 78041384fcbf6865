#pragma once

#include <torch/nn/modules/container/sequential.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/api/own_optimizer.h"
#include "core/api/remote_module.h"
#include "scenarios/random_training/plan.h"

// The modules, the functions and an optimizer of drawn trainings; their bits follow from arguments
// and seeds alone.
namespace rehearsal::random_training {

constexpr int64_t kRows = 4, kWidth = 4, kOutputs = 2;

// A layer: [n, kWidth] to [n, kWidth]. In evaluation its output is half as large.
struct Block : torch::nn::Module {
  explicit Block(int64_t seed);
  at::Tensor forward(const at::Tensor& input);
  // The same, by another name and after a while.
  at::Tensor forward_later(CallContext& call, const at::Tensor& input);

  at::Tensor weight, bias;
};

// Block, made by a function.
[[nodiscard]] std::shared_ptr<Block> make_block(CallContext& call, int64_t seed);
// A layer of LibTorch's own modules, whose output does not depend on whether it is in training.
[[nodiscard]] torch::nn::Sequential make_sequential(int64_t seed);

// The same in every member: [n, kWidth] to [n, kOutputs].
struct Head : torch::nn::Module {
  explicit Head(int64_t seed);
  [[nodiscard]] at::Tensor forward(const at::Tensor& input) const;

  at::Tensor weight, bias;
};

// The loss that a replica of the head has in a step of its own.
[[nodiscard]] at::Tensor head_loss(const Head& head, const Plan& plan, size_t step, size_t trainer);

// An input [kRows, kWidth] or a target [kRows, kOutputs].
[[nodiscard]] at::Tensor drawn_input(uint64_t word);
[[nodiscard]] at::Tensor drawn_target(uint64_t word);

// The losses of the upper and of the lower half of the rows; their sum is the batch's.
[[nodiscard]] std::vector<at::Tensor> losses_of(const at::Tensor& output, const at::Tensor& target);

// ---- called at owners ----

// One of the losses, or for number 2 their sum, times `factor`.
[[nodiscard]] at::Tensor loss_there(const at::Tensor& output, const at::Tensor& target,
                                    int64_t number, double factor);
// A pass from the sum. The loss, without the factor.
[[nodiscard]] double pass_there(CallContext& call, const at::Tensor& output,
                                const at::Tensor& target, double factor);
// Whether the layer's parameters have gradients in the context of the call.
[[nodiscard]] bool has_gradients(CallContext& call, const RRef<ServedModule<Block>>& layer);
// A number of rounds, to be counted.
[[nodiscard]] at::Tensor rounds_there();
// One more; how many it has been then.
[[nodiscard]] int64_t count_round(const RRef<at::Tensor>& rounds);
// LibTorch's own pass of a graph that is here alone, from a reference: the gradient of x² at x.
[[nodiscard]] double own_gradient(CallContext& call, double x);

// ---- an optimizer of the program's own: the sign of the gradient, and less of it each time ----

struct SignOptions : torch::optim::OptimizerCloneableOptions<SignOptions> {
  explicit SignOptions(double rate = 1e-2) : lr(rate) {}
  double get_lr() const override { return lr; }
  void set_lr(const double rate) override { lr = rate; }
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
  friend void describe(SignOptions& options, auto&& fields) { fields(options.lr); }
  double lr;
};

struct SignState : torch::optim::OptimizerCloneableParamState<SignState> {
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
  int64_t steps = 0;
};

class SignDescent : public torch::optim::Optimizer {
 public:
  SignDescent(const std::vector<torch::optim::OptimizerParamGroup>& groups,
              const SignOptions& defaults)
      : Optimizer(groups, std::make_unique<SignOptions>(defaults)) {}
  at::Tensor step(LossClosure closure = nullptr) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;
};

void register_layers(FunctionRegistry& registry);

}  // namespace rehearsal::random_training
