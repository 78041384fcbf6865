#pragma once

#include <torch/optim/schedulers/step_lr.h>

#include "core/api/distributed_grad_scaler.h"
#include "scenarios/random_training/alone.h"
#include "scenarios/random_training/chain.h"

namespace rehearsal::random_training {

// The training of the layers, by the first trainer. All methods park, and throw RpcError, and
// WrongResult for what is not as in one process.
class ChainTraining {
 public:
  // Makes the layers where they are in that half of the training.
  ChainTraining(const Worker& worker, const Plan& plan, const Alone& alone, size_t half);

  void add_to(DistributedCheckpoint& checkpoint);
  // `head`: how the losses are computed from what the layers give.
  void step(size_t number, const Head& head);
  // Things that change nothing.
  void look_around() const;

 private:
  // Null: the sum of several contexts.
  using Context = const AutogradContext*;

  void run_pass(const AutogradContext& context, const Step& step, const Pass& pass,
                const Alone::Pass& alone, const Head& head);
  double run_backward(const AutogradContext& context, const Pass& pass, const at::Tensor& output,
                      double factor) const;
  [[nodiscard]] double factor_of(const Step& step) const;
  void accumulate(const std::vector<AutogradContext>& contexts, const Step& step) const;
  void bound(const Step& step, Context context, double norm);
  [[nodiscard]] bool apply(const Step& step, Context context);
  [[nodiscard]] bool apply_in_haste(int64_t patience, Context context);
  [[nodiscard]] bool attempt(Context context);
  [[nodiscard]] bool attempt_again(Context context);
  void expect_reports() const;

  const Worker& worker_;
  const Plan& plan_;
  const Alone& alone_;
  const Chain chain_;
  const RRef<at::Tensor> rounds_;  // so many steps, at an owner
  DistributedOptimizer optimizer_;
  torch::optim::StepLR scheduler_;
  DistributedGradScaler scaler_;
};

}  // namespace rehearsal::random_training
