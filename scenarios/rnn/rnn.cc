#include "scenarios/rnn/rnn.h"

#include <cmath>
#include <cstdio>
#include <memory>

#include "scenarios/devices.h"
#include "scenarios/rnn/trainer.h"
#include "scenarios/text/corpus.h"
#include "scenarios/text/vocabulary.h"

namespace rehearsal::rnn {
namespace {

struct Text {
  std::string file;
  TextIds ids;
  int64_t vocabulary_size = 0;
  double unigram_perplexity = 0;
};

Text read_text(const Options& options) {
  const text::Corpus corpus = text::read_corpus(options.text("text"));
  const text::Vocabulary vocabulary(corpus.training, options.integer("count_min"));
  Text text{options.text("text"),
            {vocabulary.ids(corpus.training), vocabulary.ids(corpus.validation)},
            vocabulary.size(),
            0};
  text.unigram_perplexity =
      text::unigram_perplexity(text.ids.training, text.ids.validation, text.vocabulary_size);
  return text;
}

TrainingSettings settings_of(const Options& options, int64_t vocabulary_size) {
  return {.sizes = {.words = vocabulary_size,
                    .width = options.integer("width"),
                    .hidden = options.integer("hidden"),
                    .layers = options.integer("layers"),
                    .dropout = options.real("dropout")},
          .trainers = options.integer("world_size") - 1,
          .columns = options.integer("columns"),
          .steps = options.integer("steps"),
          .batches_max = options.integer("batches"),
          .epochs = options.integer("epochs"),
          .learning_rate = options.real("learning_rate"),
          .clip_norm = options.real("clip_norm")};
}

std::string text_line(const Text& text) {
  return "text " + text.file + ": " + std::to_string(text.ids.training.size()) +
         " words to train on, " + std::to_string(text.ids.validation.size()) +
         " to validate on, vocabulary " + std::to_string(text.vocabulary_size);
}

struct EpochFigures {
  int64_t number;
  int64_t epochs;
  double training;
  double validation;
  double unigram;
};

std::string epoch_line(const EpochFigures& figures, const std::string& digest) {
  char text[256];
  std::snprintf(text, sizeof text,
                "epoch %2lld/%lld  loss %6.4f  perplexity %7.2f  validation %7.2f (unigram %.2f)",
                static_cast<long long>(figures.number), static_cast<long long>(figures.epochs),
                std::log(figures.training), figures.training, figures.validation, figures.unigram);
  return std::string(text) + "  parameters " + digest;
}

std::string digest_of_parameters(
    const std::vector<std::pair<std::string, torch::Tensor>>& parameters) {
  std::vector<torch::Tensor> values;
  for (const auto& [name, value] : parameters) values.push_back(value);
  return digest_of(values);
}

void lead(Worker& worker, const TrainingSettings& settings, const Text& text, Reporter& reporter) {
  reporter.line(text_line(text));
  Trainer trainer(worker, settings, text.ids);
  EpochFigures figures{0, settings.epochs, 0, 0, text.unigram_perplexity};
  for (int64_t epoch = 1; epoch <= settings.epochs; ++epoch) {
    figures.number = epoch;
    figures.training = trainer.train_epoch([&](int64_t done, int64_t all) {
      reporter.progress("epoch " + std::to_string(epoch) + "/" + std::to_string(settings.epochs) +
                        ", batch " + std::to_string(done) + "/" + std::to_string(all));
    });
    figures.validation = trainer.validate();
    worker.note("training perplexity", figures.training);
    worker.note("validation perplexity", figures.validation);
    reporter.line(epoch_line(figures, digest_of_parameters(trainer.parameters())));
  }
  for (const auto& [name, value] : trainer.parameters()) reporter.results.tensor(name, value);
  reporter.results.number("training_perplexity", figures.training);
  reporter.results.number("validation_perplexity", figures.validation);
  reporter.results.number("unigram_perplexity", text.unigram_perplexity);
}

Program program(const ScenarioRun& run) {
  const auto text = std::make_shared<const Text>(read_text(run.options));
  const TrainingSettings settings = settings_of(run.options, text->vocabulary_size);
  // Refuses a text that is too short for these columns now, and not in the middle of a run.
  static_cast<void>(text::lay_out(text->ids.training, settings.columns * settings.trainers));
  FunctionRegistry registry;
  register_served_model(registry);
  register_text_share(registry);
  Program program(std::move(registry));
  std::vector<std::string> trainers;
  for (int64_t i = 0; i < settings.trainers; ++i) trainers.push_back("trainer" + std::to_string(i));
  program.worker("ps", [](Worker&) {});
  map_devices(program, run.devices, trainers);
  const auto trainer = [settings, text, &reporter = run.reporter](Worker& worker) {
    if (worker.name() == "trainer0") lead(worker, settings, *text, reporter);
  };
  program.worker("trainer", trainer, Count{static_cast<uint32_t>(settings.trainers)});
  trainers.emplace_back("ps");
  map_devices(program, run.devices, trainers);
  return program;
}

void declare_model_options(OptionTable& options) {
  options.integer("layers", {1, 1, 1, 16, "of the LSTM"})
      .integer("width", {128, 8, 1, 65536, "of an embedding"})
      .integer("hidden", {128, 8, 1, 65536, "units in each layer of the LSTM"})
      .real("dropout", {0.5, 0.5, 0, 0.99, "share of units left out while training"});
}

void declare_training_options(OptionTable& options) {
  options.integer("epochs", {10, 1, 1, 10000, "passes over the text"})
      .integer("batches", {0, 2, 0, 1'000'000, "the most in a pass; 0: all"})
      .integer("columns", {8, 4, 1, 4096, "parts of the text side by side, of each trainer"})
      .integer("steps", {20, 5, 1, 4096, "words in a row of backpropagation"})
      .real("learning_rate", {10, 10, 0, 1e6, "of SGD"})
      .real("clip_norm", {0.25, 0.25, 1e-9, 1e9, "the largest norm of all gradients together"});
}

}  // namespace

Scenario scenario() {
  Scenario scenario;
  scenario.name = "rnn";
  scenario.summary = "a language model learns a text; half of it lives on a parameter server";
  scenario.options.path("text", {text::kDefaultTextFile, "any UTF-8 text"})
      .integer("world_size", {2, 2, 2, 1000, "workers: the server and its trainers"})
      .integer("count_min", {2, 2, 1, 1'000'000, "words that come less often are unknown"});
  declare_model_options(scenario.options);
  declare_training_options(scenario.options);
  scenario.schedule_independent = true;
  scenario.uses_devices = true;
  scenario.program = program;
  return scenario;
}

}  // namespace rehearsal::rnn
