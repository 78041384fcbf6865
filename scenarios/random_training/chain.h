#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/api/distributed_checkpoint.h"
#include "core/api/distributed_optimizer.h"
#include "core/api/worker.h"
#include "scenarios/random_training/layers.h"
#include "scenarios/random_training/plan.h"

namespace rehearsal::random_training {

// The layers of a plan, at their owners. All methods park, and throw RpcError, and WrongResult for
// what is not so in one process.
class Chain {
 public:
  // Makes them where they are in that half of the training.
  Chain(const Worker& worker, const Plan& plan, size_t half);

  // In the order of the layers.
  [[nodiscard]] std::vector<RRef<at::Tensor>> parameters() const;
  [[nodiscard]] DistributedOptimizer optimizer() const;
  void add_to(DistributedCheckpoint& checkpoint) const;

  // Has each layer train or evaluate.
  void prepare(const Step& step) const;
  // The output of the layers that the step uses, called in the pass's forms in the context.
  [[nodiscard]] at::Tensor output(const AutogradContext& context, const Step& step,
                                  const Pass& pass, const at::Tensor& input) const;
  // Those of the layers' owners that have gradients are those whose layers were used.
  void expect_gradients(const AutogradContext& context, const Step& step) const;

  void expect_values(const std::vector<at::Tensor>& expected) const;
  // A pipeline of all layers gives what they give one after another.
  void expect_pipeline(const at::Tensor& input) const;

 private:
  using Module = std::variant<RemoteModule<Block>, RemoteModule<torch::nn::Sequential>>;

  [[nodiscard]] Module make(const Layer& layer, size_t half) const;
  void look_at(const Module& module, const std::string& owner) const;

  const Worker& worker_;
  const Plan& plan_;
  std::vector<Module> modules_;
};

}  // namespace rehearsal::random_training
