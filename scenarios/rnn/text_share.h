// One trainer's part of the training: its columns of the text and the state that its LSTM carries
// from batch to batch. The LSTM's weights live at trainer0 and come with each call, so that the
// backward pass brings their gradients home.
#pragma once

#include <vector>

#include "core/api/call_context.h"
#include "scenarios/rnn/served_model.h"
#include "scenarios/text/batches.h"

namespace rehearsal::rnn {

class TextShare {
 public:
  // `rows` are this trainer's columns; a batch takes `steps` of them.
  TextShare(models::LanguageModelSizes sizes, const torch::Tensor& rows, int64_t steps,
            ModelRefs model);

  // The mean loss of batch `number`, computed where the weights are. Batch 0 starts from an empty
  // state. Parks.
  torch::Tensor loss(int64_t number, const models::RecurrentWeights& weights);

  // The same while training, called by another trainer. Parks.
  torch::Tensor served_loss(int64_t number, const std::vector<torch::Tensor>& weights);

  int64_t batch_count() const { return static_cast<int64_t>(batches_.size()); }
  int64_t word_count(int64_t number) const;

 private:
  models::LanguageModelSizes sizes_;
  std::vector<text::Batch> batches_;
  ModelRefs model_;
  models::HiddenState state_;
};

void register_text_share(FunctionRegistry& registry);

}  // namespace rehearsal::rnn
