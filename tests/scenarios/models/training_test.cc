#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "scenarios/models/language_model.h"
#include "scenarios/models/policy_network.h"
#include "scenarios/text/corpus.h"
#include "scenarios/text/vocabulary.h"
#include "tests/scenarios/serial_training.h"

namespace rehearsal::models {
namespace {

TEST(LanguageModel, StartsAsTheTutorialSays) {
  // Goal: initial weights and shapes. Method: small sizes, look at every parameter.
  torch::manual_seed(1);
  EmbeddingTable table(50, 8, 0.5);
  Decoder decoder(50, 6, 0.5);
  const torch::Tensor weight = table.parameters().front();
  EXPECT_EQ(weight.sizes(), (std::vector<int64_t>{50, 8}));
  EXPECT_LE(weight.abs().max().item<double>(), 0.1);
  EXPECT_GT(weight.abs().max().item<double>(), 0.09);
  for (const auto& parameter : decoder.named_parameters()) {
    const double largest = parameter.value().abs().max().item<double>();
    if (parameter.key() == "decoder.bias") {
      EXPECT_EQ(largest, 0.0);
    } else {
      EXPECT_LE(largest, 0.1);
    }
  }
}

TEST(LanguageModel, DropoutActsOnlyWhileTraining) {
  // Goal: validation is exact. Method: the same input twice, in each mode.
  torch::manual_seed(1);
  EmbeddingTable table(50, 8, 0.5);
  const torch::Tensor ids = torch::arange(50);
  EXPECT_FALSE(table.forward(ids).equal(table.forward(ids)));
  table.eval();
  EXPECT_TRUE(table.forward(ids).equal(table.forward(ids)));
}

TEST(LanguageModel, HiddenStateIsCarriedAndCutOff) {
  // Goal: a batch continues its predecessor without its graph. Method: two halves against the
  // whole.
  torch::manual_seed(1);
  const LanguageModelSizes sizes{.words = 5, .width = 3, .hidden = 4, .layers = 2, .dropout = 0};
  RecurrentPart recurrent(sizes);
  const torch::Tensor input = torch::rand({6, 2, 3});
  HiddenState whole_state = initial_state(sizes, 2);
  const torch::Tensor whole = recurrent.forward(input, whole_state);
  HiddenState state = initial_state(sizes, 2);
  const torch::Tensor first = recurrent.forward(input.slice(0, 0, 3), state);
  EXPECT_TRUE(std::get<0>(state).requires_grad());
  state = detached(state);
  EXPECT_FALSE(std::get<0>(state).requires_grad());
  EXPECT_FALSE(std::get<1>(state).requires_grad());
  const torch::Tensor second = recurrent.forward(input.slice(0, 3, 6), state);
  EXPECT_TRUE(torch::cat({first, second}).allclose(whole));
}

TEST(LanguageModel, LearnsFarMoreThanWordCounts) {
  // Goal: the defaults of the rnn scenario train. Method: five epochs on the default text,
  // serially.
  torch::set_num_threads(1);
  torch::manual_seed(1);
  const text::Corpus corpus = text::read_corpus(text::kDefaultTextFile);
  const text::Vocabulary vocabulary(corpus.training, 2);
  const auto training = vocabulary.ids(corpus.training);
  const auto validation = vocabulary.ids(corpus.validation);
  serial::LanguageModel model(
      {.words = vocabulary.size(), .width = 128, .hidden = 128, .layers = 1, .dropout = 0.5});
  const auto batches = text::make_batches(text::lay_out(training, 8), 20);
  const auto held_out = text::make_batches(text::lay_out(validation, 1), 50);
  double last = 0;
  for (int epoch = 0; epoch < 5; ++epoch) last = serial::train_epoch(model, batches, {});
  const double unigram = text::unigram_perplexity(training, validation, vocabulary.size());
  EXPECT_LT(last, 0.8 * unigram);
  EXPECT_LT(serial::perplexity(model, held_out), 0.6 * unigram);
}

TEST(PolicyNetwork, ReturnsAreDiscountedFromTheEnd) {
  // Goal: the definition. Method: three rewards by hand.
  const std::vector<double> returns = discounted_returns({1, 2, 3});
  EXPECT_DOUBLE_EQ(returns[2], 3);
  EXPECT_DOUBLE_EQ(returns[1], 2 + 0.99 * 3);
  EXPECT_DOUBLE_EQ(returns[0], 1 + 0.99 * (2 + 0.99 * 3));
}

TEST(PolicyNetwork, LossWeighsLogProbabilitiesByNormalisedReturns) {
  // Goal: the tutorial's loss. Method: returns 1 and 3 normalise to -1/√2 and 1/√2.
  const double loss = policy_loss(torch::tensor({-0.5f, -0.25f}), {1, 3}).item<double>();
  EXPECT_NEAR(loss, -(-0.5 * -std::sqrt(0.5) + -0.25 * std::sqrt(0.5)), 1e-6);
}

TEST(PolicyNetwork, LossOfOneStepIsFinite) {
  // Goal: an episode of one step does not poison the weights. Method: one number has no deviation.
  EXPECT_NEAR(policy_loss(torch::tensor({-0.5f}), {1}).item<double>(), 0.5, 1e-6);
}

TEST(PolicyNetwork, SampledActionsFollowTheProbabilities) {
  // Goal: actions are drawn as the policy says. Method: 2,000 draws without dropout.
  torch::manual_seed(1);
  PolicyNetwork policy;
  policy.eval();
  const torch::Tensor state = torch::tensor({0.5f, -1.0f, 0.3f, 2.0f});
  const torch::Tensor probabilities = policy.forward(state.unsqueeze(0), torch::ones({1, 128}));
  int ones = 0;
  for (int i = 0; i < 2000; ++i) ones += static_cast<int>(sample_step(policy, state).action);
  EXPECT_NEAR(ones / 2000.0, probabilities[0][1].item<double>(), 0.05);
}

TEST(PolicyNetwork, BatchRepeatsWhatEachStepDrew) {
  // Goal: the log-probabilities of an episode are those of its steps. Method: one by one against
  // all.
  torch::manual_seed(1);
  PolicyNetwork policy;
  std::vector<SampledStep> steps;
  for (int i = 0; i < 20; ++i) steps.push_back(sample_step(policy, torch::randn({4})));
  EXPECT_NEAR(steps[0].mask.max().item<double>(), 2.5, 1e-6);
  const torch::Tensor all = log_probabilities(policy, steps);
  EXPECT_TRUE(all.requires_grad());
  for (size_t i = 0; i < steps.size(); ++i) {
    const torch::Tensor one = log_probabilities(policy, {steps[i]});
    EXPECT_NEAR(all[static_cast<int64_t>(i)].item<double>(), one.item<double>(), 1e-6);
  }
}

TEST(PolicyNetwork, ReinforceImprovesTheSerialAgent) {
  // Goal: the algorithm learns. Method: 60 rounds of two observers beat the first ones clearly.
  torch::set_num_threads(1);
  torch::manual_seed(1);
  serial::ReinforceTraining training(1, 2);
  for (int round = 0; round < 60; ++round) training.run_round();
  EXPECT_GT(training.running_reward(), 25);
}

}  // namespace
}  // namespace rehearsal::models
