#include "scenarios/models/language_model.h"

#include <torch/nn/functional/loss.h>
#include <torch/nn/init.h>

namespace rehearsal::models {
namespace {

constexpr double kInitialMax = 0.1;

}  // namespace

EmbeddingTable::EmbeddingTable(int64_t words, int64_t width, double dropout)
    : encoder_(register_module("encoder", torch::nn::Embedding(words, width))),
      drop_(register_module("drop", torch::nn::Dropout(dropout))) {
  torch::nn::init::uniform_(encoder_->weight, -kInitialMax, kInitialMax);
}

torch::Tensor EmbeddingTable::forward(const torch::Tensor& ids) { return drop_(encoder_(ids)); }

Decoder::Decoder(int64_t words, int64_t hidden, double dropout)
    : drop_(register_module("drop", torch::nn::Dropout(dropout))),
      decoder_(register_module("decoder", torch::nn::Linear(hidden, words))) {
  torch::nn::init::zeros_(decoder_->bias);
  torch::nn::init::uniform_(decoder_->weight, -kInitialMax, kInitialMax);
}

torch::Tensor Decoder::forward(const torch::Tensor& output) { return decoder_(drop_(output)); }

RecurrentPart::RecurrentPart(const LanguageModelSizes& sizes) : sizes_(sizes) {
  auto options = torch::nn::LSTMOptions(sizes.width, sizes.hidden).num_layers(sizes.layers);
  // Dropout acts between layers; LibTorch warns when there is no between.
  if (sizes.layers > 1) options.dropout(sizes.dropout);
  lstm_ = register_module("lstm", torch::nn::LSTM(options));
}

torch::Tensor RecurrentPart::forward(const torch::Tensor& embedded, HiddenState& state) {
  return recurrent_forward(sizes_, {parameters(), is_training()}, embedded, state);
}

torch::Tensor recurrent_forward(const LanguageModelSizes& sizes, const RecurrentWeights& weights,
                                const torch::Tensor& embedded, HiddenState& state) {
  const auto [hidden, cell] = state;
  auto [output, next_hidden, next_cell] =
      torch::lstm(embedded, {hidden, cell}, weights.tensors, /*has_biases=*/true, sizes.layers,
                  sizes.dropout, weights.training, /*bidirectional=*/false, /*batch_first=*/false);
  state = {next_hidden, next_cell};
  return output;
}

HiddenState initial_state(const LanguageModelSizes& sizes, int64_t columns,
                          const torch::Device& device) {
  const std::vector<int64_t> shape = {sizes.layers, columns, sizes.hidden};
  return {torch::zeros(shape, device), torch::zeros(shape, device)};
}

HiddenState detached(const HiddenState& state) {
  return {std::get<0>(state).detach(), std::get<1>(state).detach()};
}

torch::Tensor word_loss(const torch::Tensor& scores, const torch::Tensor& targets) {
  return torch::nn::functional::cross_entropy(scores.flatten(0, 1), targets.flatten());
}

}  // namespace rehearsal::models
