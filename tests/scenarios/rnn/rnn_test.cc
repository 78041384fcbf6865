#include "scenarios/rnn/rnn.h"

#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "scenarios/rnn/trainer.h"
#include "sim/cluster.h"
#include "tests/scenarios/serial_training.h"
#include "tests/scenarios/simulated.h"

namespace rehearsal::rnn {
namespace {

using Named = std::vector<std::pair<std::string, torch::Tensor>>;

TextIds counting_text(int64_t words, int64_t vocabulary) {
  TextIds text;
  for (int64_t i = 0; i < words; ++i) {
    text.training.push_back(i * i % vocabulary);
    text.validation.push_back(i * 3 % vocabulary);
  }
  return text;
}

TrainingSettings small_settings(int64_t trainers) {
  return {.sizes = {.words = 11, .width = 5, .hidden = 6, .layers = 2, .dropout = 0},
          .trainers = trainers,
          .columns = 2,
          .steps = 4,
          .batches_max = 0,
          .epochs = 1,
          .learning_rate = 1,
          .clip_norm = 0.25};
}

struct Training {
  Named before;
  Named after;
  double training = 0;
  double validation = 0;
};

// Trains for one epoch on a simulated cluster.
Training train(const TrainingSettings& settings, const TextIds& text) {
  Training training;
  FunctionRegistry registry;
  register_served_model(registry);
  register_text_share(registry);
  Program program(std::move(registry));
  program.worker("ps", [](Worker&) {});
  const auto main = [&](Worker& worker) {
    if (worker.name() != "trainer0") return;
    Trainer trainer(worker, settings, text);
    for (const auto& [name, value] : trainer.parameters()) {
      training.before.emplace_back(name, value.clone());
    }
    training.training = trainer.train_epoch([](int64_t, int64_t) {});
    training.validation = trainer.validate();
    training.after = trainer.parameters();
  };
  program.worker("trainer", main, Count{static_cast<uint32_t>(settings.trainers)});
  sim::Cluster cluster(Seed{3}, program);
  cluster.run();
  return training;
}

void copy_parameters(const Named& from, const std::vector<torch::Tensor>& to) {
  const torch::NoGradGuard no_grad;
  ASSERT_EQ(from.size(), to.size());
  for (size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i].second);
}

TEST(Rnn, OneTrainerGivesTheBitsOfOneProcess) {
  // Goal: distribution changes no bit. Method: the same weights, trained serially with LibTorch's
  // own engine, clipping and SGD.
  const TrainingSettings settings = small_settings(1);
  const TextIds text = counting_text(120, settings.sizes.words);
  const Training distributed = train(settings, text);
  serial::LanguageModel model(settings.sizes);
  copy_parameters(distributed.before, model.parameters());
  const auto batches = text::make_batches(text::lay_out(text.training, 2), settings.steps);
  const double perplexity = serial::train_epoch(
      model, batches, {.learning_rate = settings.learning_rate, .clip_norm = settings.clip_norm});
  EXPECT_DOUBLE_EQ(distributed.training, perplexity);
  const auto held_out = text::make_batches(text::lay_out(text.validation, 1), 50);
  EXPECT_DOUBLE_EQ(distributed.validation, serial::perplexity(model, held_out));
  const auto parameters = model.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_TRUE(parameters[i].equal(distributed.after[i].second)) << distributed.after[i].first;
    EXPECT_FALSE(parameters[i].equal(distributed.before[i].second)) << distributed.after[i].first;
  }
}

TEST(Rnn, TrainersTogetherStepAsOneWithAllColumns) {
  // Goal: a round is one step with the sum of all gradients. Method: three trainers with two
  // columns against one process with six, whose loss is a mean over thrice the words.
  const TrainingSettings settings = small_settings(3);
  const TextIds text = counting_text(120, settings.sizes.words);
  const Training distributed = train(settings, text);
  serial::LanguageModel model(settings.sizes);
  copy_parameters(distributed.before, model.parameters());
  const auto batches = text::make_batches(text::lay_out(text.training, 6), settings.steps);
  torch::optim::SGD optimizer(model.parameters(), settings.learning_rate);
  models::HiddenState state = models::initial_state(settings.sizes, 6);
  for (const text::Batch& batch : batches) {
    state = models::detached(state);
    optimizer.zero_grad();
    (models::word_loss(model.forward(batch.inputs, state), batch.targets) * 3).backward();
    torch::nn::utils::clip_grad_norm_(model.parameters(), settings.clip_norm);
    optimizer.step();
  }
  const auto parameters = model.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_TRUE(parameters[i].allclose(distributed.after[i].second, 1e-4, 1e-5))
        << distributed.after[i].first;
  }
}

TEST(Rnn, FaultsChangeNoBit) {
  // Goal: the result is a function of the seed alone. Method: one and two trainers at every level.
  const Scenario rnn = scenario();
  for (const char* world : {"world_size=2", "world_size=3"}) {
    const auto calm = simulated(rnn, 5, sim::FaultLevel::none, {world});
    ASSERT_TRUE(calm.outcome.ok) << failure_text(calm.outcome);
    for (const sim::FaultLevel faults : {sim::FaultLevel::mild, sim::FaultLevel::hostile}) {
      const auto run = simulated(rnn, 5, faults, {world});
      ASSERT_TRUE(run.outcome.ok) << failure_text(run.outcome);
      EXPECT_EQ(run.outcome.results.digest(), calm.outcome.results.digest());
    }
  }
  const auto one = simulated(rnn, 5, sim::FaultLevel::none);
  const auto other = simulated(rnn, 6, sim::FaultLevel::none);
  EXPECT_NE(one.outcome.results.digest(), other.outcome.results.digest());
}

TEST(Rnn, OnDevicesItLearnsTheSameBits) {
  // Goal: on devices that compute later neither their number nor faults change a bit, and it learns
  // what it learns without them. Method: one device and no faults, beside many and hostile faults;
  // without devices the same perplexity, not the same bits, for the recurrent cells of devices
  // round otherwise. No dropout, which devices draw otherwise.
  const Scenario rnn = scenario();
  for (const char* world : {"world_size=2", "world_size=3"}) {
    const std::vector<std::string> options = {world, "dropout=0"};
    const auto without = simulated(rnn, 5, sim::FaultLevel::none, options);
    const auto one = simulated_on_devices(1, rnn, 5, {.faults = sim::FaultLevel::none}, options);
    ASSERT_TRUE(one.outcome.ok) << failure_text(one.outcome);
    const auto perplexity = [](const SimulatedRun& run) {
      return run.outcome.results.numbers().at("validation_perplexity");
    };
    EXPECT_NEAR(perplexity(one), perplexity(without), 1e-4 * perplexity(without));
    for (const int devices : {1, 2, 4}) {
      const auto run =
          simulated_on_devices(devices, rnn, 5, {.faults = sim::FaultLevel::hostile}, options);
      ASSERT_TRUE(run.outcome.ok) << failure_text(run.outcome);
      EXPECT_EQ(run.outcome.results.digest(), one.outcome.results.digest()) << devices;
    }
  }
}

TEST(Rnn, EpochLinesTellLossPerplexityAndDigest) {
  // Goal: the story of a run. Method: two tiny epochs.
  const auto run = simulated(scenario(), 1, sim::FaultLevel::mild, {"epochs=2"});
  ASSERT_EQ(run.lines.size(), 3u);
  EXPECT_EQ(run.lines[0].substr(0, 10), "text /usr/");
  EXPECT_EQ(run.lines[2].substr(0, 17), "epoch  2/2  loss ");
  const std::string digest = run.lines[2].substr(run.lines[2].rfind(' ') + 1);
  EXPECT_EQ(digest.size(), 32u);
  EXPECT_EQ(run.outcome.results.tensors().size(), 7u);
}

TEST(Rnn, LearnsFarMoreThanWordCounts) {
  // Goal: the default training works through distributed autograd. Method: four full epochs.
  const auto run = simulated(scenario(), 1, sim::FaultLevel::mild, {"size=full", "epochs=4"});
  ASSERT_TRUE(run.outcome.ok) << failure_text(run.outcome);
  const auto& numbers = run.outcome.results.numbers();
  EXPECT_LT(numbers.at("validation_perplexity"), 0.75 * numbers.at("unigram_perplexity"));
}

}  // namespace
}  // namespace rehearsal::rnn
