#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <vector>

namespace rehearsal {

// The options of groups without parameters, for whatever changes options of a
// torch::optim::Optimizer.
class GroupOptions final : public torch::optim::Optimizer {
 public:
  GroupOptions(const std::vector<torch::optim::OptimizerParamGroup>& groups,
               std::unique_ptr<torch::optim::OptimizerOptions> defaults)
      : Optimizer(groups, std::move(defaults)) {}
  // Throws std::logic_error.
  torch::Tensor step(LossClosure closure) override;
};

}  // namespace rehearsal
