#pragma once

#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/step_lr.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/api/distributed_grad_scaler.h"
#include "core/api/distributed_optimizer.h"
#include "core/api/worker.h"
#include "scenarios/storm/dice.h"

// The trainings of a storm.
namespace rehearsal::storm {

// A parameter of three numbers that follow from the word, on one of the owner's devices, if it has
// any.
at::Tensor drawn_parameter(CallContext& context, uint64_t word);

// x · parameter, at the parameter's owner.
at::Tensor times_parameter(const at::Tensor& x, const RRef<at::Tensor>& parameter);

// The norm of the gradient that the context has for the parameter, at its owner.
double gradient_norm(CallContext& context, const RRef<at::Tensor>& parameter);

// How many hold the parameter at its owner, whose value it is: one, or more while it is in use.
int64_t parameter_holders(const RRef<at::Tensor>& parameter);

void register_training(FunctionRegistry& registry);

// Parameters at drawn workers, which a distributed optimizer trains, and the same ones here, which
// LibTorch's own trains. Both have the same bits after every round, whatever failed in it.
class Training {
 public:
  // Draws the parameters and how they are trained. `dice` outlives it.
  Training(Worker& worker, Dice& dice);

  // One step, of one context or of the sum of several. False: calls had so little time so often
  // that it was given up. Parks. Throws WrongResult, RpcError.
  bool round();

  // Whether calls of the optimizer may have too little time.
  [[nodiscard]] bool hurries() const { return patience_.has_value(); }
  // Of the parameters, whose values follow from the dice unless it hurries.
  [[nodiscard]] uint64_t digest() const;

  // Ends the optimizer, and waits until no owner has a part of it. Parks. Throws WrongResult.
  // `looks`: else it does not wait. How often a tensor is held follows from no message, and a
  // worker that was recorded may see another number when it is replayed.
  void end(bool looks);

 private:
  struct Trained {
    RRef<at::Tensor> there;
    at::Tensor here;
  };
  enum class Clip : uint8_t { none, norm, value };
  // How one round goes.
  struct Plan {
    uint64_t contexts = 1;
    bool sum_alone = false;  // the step has no context of its own
    Clip clip = Clip::none;
    bool overflows = false;
  };

  void make_optimizers();
  [[nodiscard]] Plan plan();
  [[nodiscard]] AutogradContext new_context() const;
  // Which parameters a context has gradients for: unless that is allowed, no owner lacks one.
  [[nodiscard]] std::vector<size_t> drawn_parameters();
  void differentiate(const AutogradContext& context, const std::vector<size_t>& used,
                     bool overflows = false);
  // The gradients of all contexts but that which is left: nothing if there was too little time.
  [[nodiscard]] bool collect(const Plan& plan, std::optional<AutogradContext>& left);
  // False: the gradients are of no more use.
  [[nodiscard]] bool clip(Clip how, const AutogradContext* context);
  [[nodiscard]] bool step(bool overflows, const AutogradContext* context);
  void look_at_gradients(const AutogradContext& context) const;
  [[nodiscard]] bool drop_a_sum();
  void step_without_an_owner(WorkerId lacking);
  void change_rate();
  void compare() const;

  // Whether `call`, or else `again` in one of several attempts, had enough time.
  [[nodiscard]] bool in_time(const std::function<void()>& call,
                             const std::function<void()>& again) const;
  [[nodiscard]] bool in_time(const std::function<void()>& call) const {
    return in_time(call, call);
  }

  Worker& worker_;
  Dice& dice_;
  std::vector<Trained> parameters_;
  std::optional<DistributedOptimizer> optimizer_;
  std::unique_ptr<torch::optim::Optimizer> twin_;
  std::optional<torch::optim::StepLR> schedule_;
  std::optional<torch::optim::StepLR> twin_schedule_;
  std::optional<DistributedGradScaler> scaler_;
  std::optional<Duration> patience_;
  bool owners_may_lack_gradients_ = false;
};

}  // namespace rehearsal::storm
