// The policy of PyTorch's reinforcement learning tutorial (examples/distributed/rpc/rl), and what
// it learns from: REINFORCE on the normalised discounted returns of an episode.
//
// A step keeps what was drawn for it (dropout mask and action), not its graph. The
// log-probabilities of all steps are then calculated in one batch, so that the gradient of an
// episode does not depend on the order in which the observers asked.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "scenarios/models/cart_pole.h"

namespace rehearsal::models {

inline constexpr double kRewardDiscount = 0.99;

class PolicyNetwork : public torch::nn::Module {
 public:
  PolicyNetwork();

  // float {n, 4} states to float {n, 2} probabilities of the actions. `masks`, float {n, 128}, is
  // what dropout multiplies the hidden units with. On the device of the parameters; the arguments
  // may be elsewhere.
  torch::Tensor forward(const torch::Tensor& states, const torch::Tensor& masks);

  // A mask for one step: each unit is left out with probability 0.6, the others are scaled up.
  // Draws from the default generator; all ones if not training.
  torch::Tensor draw_mask() const;

  // Draws all parameters anew, as their layers do.
  void draw_parameters(const at::Generator& generator);

 private:
  torch::nn::Linear affine1_{nullptr};
  torch::nn::Linear affine2_{nullptr};
};

struct SampledStep {
  torch::Tensor state;  // {4}, on the CPU
  torch::Tensor mask;   // {128}, on the CPU
  int64_t action = 0;
};

// float {4}
[[nodiscard]] torch::Tensor tensor_of(const CartPole::Observation& observation);

// Draws a mask and an action for one state {4} from the default generator. Records no graph.
SampledStep sample_step(PolicyNetwork& policy, const torch::Tensor& state);

// The same for many states in one pass through the network. A draw for a state depends on
// its seed alone.
std::vector<SampledStep> sample_steps(PolicyNetwork& policy,
                                      const std::vector<torch::Tensor>& states,
                                      const std::vector<uint64_t>& seeds);

// The logarithms of the probabilities of these actions, float {n}, with their graph, on the
// policy's device.
torch::Tensor log_probabilities(PolicyNetwork& policy, const std::vector<SampledStep>& steps);

// The return of each step: its reward plus the discounted return of the next one.
std::vector<double> discounted_returns(const std::vector<double>& rewards);

// Minus the sum of log-probability times return, where the returns are first brought to mean 0 and
// standard deviation 1.
torch::Tensor policy_loss(const torch::Tensor& log_probabilities,
                          const std::vector<double>& returns);

}  // namespace rehearsal::models
