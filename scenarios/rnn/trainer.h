// trainer0: leads the training, whatever the number of trainers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/api/distributed_optimizer.h"
#include "core/api/worker.h"
#include "scenarios/rnn/served_model.h"
#include "scenarios/rnn/text_share.h"

namespace rehearsal::rnn {

struct TrainingSettings {
  models::LanguageModelSizes sizes;
  int64_t trainers = 1;
  int64_t columns = 1;      // of each trainer
  int64_t steps = 1;        // rows of a batch
  int64_t batches_max = 0;  // in a pass over the text; 0: all
  int64_t epochs = 1;
  double learning_rate = 1;
  double clip_norm = 1;
};

struct TextIds {
  std::vector<int64_t> training;
  std::vector<int64_t> validation;
};

// Makes the model: embedding table and decoder at "ps", the LSTM here. A round is one step of SGD
// for all trainers: each calculates the loss of its columns, side by side; one backward pass over
// the sum of the losses, in rank order, adds up their gradients; one step follows.
class Trainer {
 public:
  // Parks.
  Trainer(const Worker& worker, const TrainingSettings& settings, const TextIds& text);

  // One pass over the training text; `on_round(done, all)` after each round. Returns the
  // perplexity. Parks.
  double train_epoch(const std::function<void(int64_t, int64_t)>& on_round);

  // The perplexity of the validation text. Parks.
  double validate();

  // All parameters by name, on the CPU, in a fixed order: table, LSTM, decoder. Parks.
  std::vector<std::pair<std::string, torch::Tensor>> parameters();

 private:
  double run_round(int64_t number);
  void set_training(bool on);

  const Worker& worker_;
  TrainingSettings settings_;
  ModelRefs model_;
  models::RecurrentPart recurrent_;
  DistributedOptimizer optimizer_;
  TextShare own_share_;
  std::vector<RRef<TextShare>> other_shares_;  // of trainer1, trainer2, …
  TextShare validation_share_;
};

}  // namespace rehearsal::rnn
