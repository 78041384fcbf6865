// The trainings of the scenarios in one process, without any call: what their tests compare with.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "scenarios/models/cart_pole.h"
#include "scenarios/models/language_model.h"
#include "scenarios/models/policy_network.h"
#include "scenarios/text/batches.h"

namespace rehearsal::serial {

struct LanguageModel {
  explicit LanguageModel(const models::LanguageModelSizes& model_sizes)
      : sizes(model_sizes),
        table(sizes.words, sizes.width, sizes.dropout),
        recurrent(sizes),
        decoder(sizes.words, sizes.hidden, sizes.dropout) {}

  torch::Tensor forward(const torch::Tensor& ids, models::HiddenState& state) {
    return decoder.forward(recurrent.forward(table.forward(ids), state));
  }

  // Table, recurrent part, decoder: the tutorial's order.
  std::vector<torch::Tensor> parameters() {
    std::vector<torch::Tensor> all;
    for (torch::nn::Module* part : parts()) {
      for (torch::Tensor& parameter : part->parameters()) all.push_back(parameter);
    }
    return all;
  }

  void train(bool on) {
    for (torch::nn::Module* part : parts()) part->train(on);
  }

  std::vector<torch::nn::Module*> parts() { return {&table, &recurrent, &decoder}; }

  const models::LanguageModelSizes sizes;
  models::EmbeddingTable table;
  models::RecurrentPart recurrent;
  models::Decoder decoder;
};

struct SgdSettings {
  double learning_rate = 10;
  double clip_norm = 0.25;
};

// One pass of SGD over the batches; returns the perplexity on them.
inline double train_epoch(LanguageModel& model, const std::vector<text::Batch>& batches,
                          const SgdSettings& settings) {
  model.train(true);
  torch::optim::SGD optimizer(model.parameters(), settings.learning_rate);
  models::HiddenState state = models::initial_state(model.sizes, batches.front().inputs.size(1));
  double loss_sum = 0;
  int64_t words = 0;
  for (const text::Batch& batch : batches) {
    state = models::detached(state);
    optimizer.zero_grad();
    const torch::Tensor loss = models::word_loss(model.forward(batch.inputs, state), batch.targets);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(model.parameters(), settings.clip_norm);
    optimizer.step();
    loss_sum += loss.item<double>() * static_cast<double>(batch.targets.numel());
    words += batch.targets.numel();
  }
  return std::exp(loss_sum / static_cast<double>(words));
}

// The perplexity on batches the model does not learn from.
inline double perplexity(LanguageModel& model, const std::vector<text::Batch>& batches) {
  const torch::NoGradGuard no_grad;
  model.train(false);
  models::HiddenState state = models::initial_state(model.sizes, batches.front().inputs.size(1));
  double loss_sum = 0;
  int64_t words = 0;
  for (const text::Batch& batch : batches) {
    const torch::Tensor loss = models::word_loss(model.forward(batch.inputs, state), batch.targets);
    loss_sum += loss.item<double>() * static_cast<double>(batch.targets.numel());
    words += batch.targets.numel();
  }
  return std::exp(loss_sum / static_cast<double>(words));
}

// The tutorial's agent with its observers, one after the other.
class ReinforceTraining {
 public:
  ReinforceTraining(uint64_t seed, int observer_count)
      : optimizer_(policy_.parameters(), torch::optim::AdamOptions(1e-2)) {
    for (int i = 0; i < observer_count; ++i)
      carts_.emplace_back(seed * 1000 + static_cast<uint64_t>(i));
  }

  // One episode of each observer and one step of the policy; returns the smallest return.
  double run_round() {
    std::vector<models::SampledStep> steps;
    std::vector<double> rewards;
    double last_reward = models::CartPole::kStepsMax;
    for (models::CartPole& cart : carts_) {
      last_reward = std::min(last_reward, run_episode(cart, steps, rewards));
    }
    optimizer_.zero_grad();
    models::policy_loss(models::log_probabilities(policy_, steps),
                        models::discounted_returns(rewards))
        .backward();
    optimizer_.step();
    running_reward_ = 0.05 * last_reward + 0.95 * running_reward_;
    return last_reward;
  }

  double running_reward() const { return running_reward_; }
  models::PolicyNetwork& policy() { return policy_; }

 private:
  double run_episode(models::CartPole& cart, std::vector<models::SampledStep>& steps,
                     std::vector<double>& rewards) {
    double total = 0;
    models::CartPole::Step step{.observation = cart.reset()};
    while (!step.done) {
      const auto& seen = step.observation;
      steps.push_back(
          models::sample_step(policy_, torch::tensor({seen[0], seen[1], seen[2], seen[3]})));
      step = cart.step(static_cast<models::CartPole::Action>(steps.back().action));
      rewards.push_back(step.reward);
      total += step.reward;
    }
    return total;
  }

  models::PolicyNetwork policy_;
  torch::optim::Adam optimizer_;
  std::vector<models::CartPole> carts_;
  double running_reward_ = 0;
};

}  // namespace rehearsal::serial
