#include "scenarios/rnn/trainer.h"

#include <torch/nn/module.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>

#include "scenarios/devices.h"

namespace rehearsal::rnn {
namespace {

constexpr const char* kServer = "ps";
constexpr int64_t kValidationSteps = 50;

ModelRefs make_model(const Worker& worker, const models::LanguageModelSizes& sizes) {
  ModelRefs model = {
      worker.remote<ServedTable>(kServer, sizes.words, sizes.width, sizes.dropout),
      worker.remote<ServedDecoder>(kServer, sizes.words, sizes.hidden, sizes.dropout)};
  // All workers have as many.
  if (const int devices = worker.device_count(); devices > 0) {
    worker.rpc_sync(model.table, &ServedTable::place, devices - 1);
    worker.rpc_sync(model.decoder, &ServedDecoder::place, 0);
  }
  return model;
}

models::RecurrentPart make_recurrent(const Worker& worker,
                                     const models::LanguageModelSizes& sizes) {
  models::RecurrentPart recurrent(sizes);
  recurrent.to(device_or_cpu(worker));
  return recurrent;
}

DistributedOptimizer make_optimizer(const Worker& worker, const ModelRefs& model,
                                    const models::RecurrentPart& recurrent, double learning_rate) {
  auto parameters = worker.rpc_sync(model.table, &ServedTable::parameter_rrefs);
  for (const torch::Tensor& parameter : recurrent.parameters()) {
    parameters.push_back(worker.rref(parameter));
  }
  const auto decoder = worker.rpc_sync(model.decoder, &ServedDecoder::parameter_rrefs);
  parameters.insert(parameters.end(), decoder.begin(), decoder.end());
  return {worker, parameters, torch::optim::SGDOptions(learning_rate)};
}

torch::Tensor training_columns(const TextIds& text, const TrainingSettings& settings,
                               int64_t part) {
  const torch::Tensor rows = text::lay_out(text.training, settings.columns * settings.trainers);
  return text::columns_of_part(rows, part, settings.trainers);
}

// Adds up mean losses, weighted by their words.
class PerplexitySum {
 public:
  void add(double loss, int64_t words) {
    loss_sum_ += loss * static_cast<double>(words);
    words_ += words;
  }
  double perplexity() const { return std::exp(loss_sum_ / static_cast<double>(words_)); }

 private:
  double loss_sum_ = 0;
  int64_t words_ = 0;
};

int64_t limited(int64_t count, int64_t max) { return max == 0 ? count : std::min(count, max); }

}  // namespace

Trainer::Trainer(const Worker& worker, const TrainingSettings& settings, const TextIds& text)
    : worker_(worker),
      settings_(settings),
      model_(make_model(worker, settings.sizes)),
      recurrent_(make_recurrent(worker, settings.sizes)),
      optimizer_(make_optimizer(worker, model_, recurrent_, settings.learning_rate)),
      own_share_(settings.sizes, training_columns(text, settings, 0), settings.steps, model_),
      validation_share_(settings.sizes, text::lay_out(text.validation, 1), kValidationSteps,
                        model_) {
  for (int64_t rank = 1; rank < settings.trainers; ++rank) {
    other_shares_.push_back(
        worker.remote<TextShare>("trainer" + std::to_string(rank), settings.sizes,
                                 training_columns(text, settings, rank), settings.steps, model_));
  }
}

void Trainer::set_training(bool on) {
  recurrent_.train(on);
  worker_.rpc_sync(model_.table, &torch::nn::Module::train, on);
  worker_.rpc_sync(model_.decoder, &torch::nn::Module::train, on);
}

double Trainer::train_epoch(const std::function<void(int64_t, int64_t)>& on_round) {
  set_training(true);
  const int64_t rounds = limited(own_share_.batch_count(), settings_.batches_max);
  PerplexitySum sum;
  for (int64_t number = 0; number < rounds; ++number) {
    sum.add(run_round(number), own_share_.word_count(number));
    on_round(number + 1, rounds);
  }
  return sum.perplexity();
}

// The calls of the others start first, so that they run beside our own.
double Trainer::run_round(int64_t number) {
  const AutogradContext context = worker_.autograd_context();
  const auto recording = context.record();
  std::vector<Future<torch::Tensor>> others;
  for (const RRef<TextShare>& share : other_shares_) {
    // Two more calls are made inside each of these: together they may take longer than one may.
    others.push_back(share.with_timeout(Timeout::never())
                         .rpc_async(&TextShare::served_loss, number, recurrent_.parameters()));
  }
  torch::Tensor loss = own_share_.loss(number, {recurrent_.parameters(), true});
  for (const Future<torch::Tensor>& other : others) loss = loss + other.wait();
  context.backward({loss});
  optimizer_.clip_grad_norm(context, settings_.clip_norm);
  optimizer_.step(context);
  return loss.item<double>() / static_cast<double>(settings_.trainers);
}

double Trainer::validate() {
  const torch::NoGradGuard no_grad;
  set_training(false);
  const int64_t batches = limited(validation_share_.batch_count(), settings_.batches_max);
  PerplexitySum sum;
  for (int64_t number = 0; number < batches; ++number) {
    const torch::Tensor loss = validation_share_.loss(number, {recurrent_.parameters(), false});
    sum.add(loss.item<double>(), validation_share_.word_count(number));
  }
  return sum.perplexity();
}

std::vector<std::pair<std::string, torch::Tensor>> Trainer::parameters() {
  std::vector<std::pair<std::string, torch::Tensor>> named;
  const auto table = worker_.rpc_sync(model_.table, &ServedTable::values);
  named.emplace_back("table.weight", table.at(0));
  for (const auto& parameter : recurrent_.named_parameters()) {
    named.emplace_back("recurrent." + parameter.key(), parameter.value().detach());
  }
  const auto decoder = worker_.rpc_sync(model_.decoder, &ServedDecoder::values);
  named.emplace_back("decoder.weight", decoder.at(0));
  named.emplace_back("decoder.bias", decoder.at(1));
  for (auto& [name, value] : named) value = value.cpu();
  return named;
}

}  // namespace rehearsal::rnn
