// The three parts of the RNN language model of PyTorch's tutorial "Getting Started with Distributed
// RPC Framework" (examples/distributed/rpc/rnn): an embedding table and a decoder, which a
// parameter server keeps, and an LSTM between them, which the trainer keeps. Weights of the first
// two start uniform in ±0.1, the decoder's bias at zero, the LSTM as LibTorch starts it. Dropout
// acts while training only.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/types.h>

#include <cstdint>
#include <tuple>
#include <vector>

namespace rehearsal::models {

struct LanguageModelSizes {
  int64_t words = 1;   // in the vocabulary
  int64_t width = 1;   // of an embedding
  int64_t hidden = 1;  // units in each layer of the LSTM
  int64_t layers = 1;
  double dropout = 0;

  friend void describe(LanguageModelSizes& sizes, auto&& fields) {
    fields(sizes.words, sizes.width, sizes.hidden, sizes.layers, sizes.dropout);
  }
};

class EmbeddingTable : public torch::nn::Module {
 public:
  EmbeddingTable(int64_t words, int64_t width, double dropout);

  // int64 {rows, columns} to float {rows, columns, width}.
  torch::Tensor forward(const torch::Tensor& ids);

 private:
  torch::nn::Embedding encoder_{nullptr};
  torch::nn::Dropout drop_{nullptr};
};

class Decoder : public torch::nn::Module {
 public:
  Decoder(int64_t words, int64_t hidden, double dropout);

  // float {rows, columns, hidden} to the scores of each word, float {rows, columns, words}.
  torch::Tensor forward(const torch::Tensor& output);

 private:
  torch::nn::Dropout drop_{nullptr};
  torch::nn::Linear decoder_{nullptr};
};

// An LSTM carries these from one batch to the next: hidden and cell state.
using HiddenState = std::tuple<torch::Tensor, torch::Tensor>;

// Zeros, for the first batch of a pass over the text.
HiddenState initial_state(const LanguageModelSizes& sizes, int64_t columns,
                          const torch::Device& device = torch::kCPU);

// Cuts the state off the graph that made it: truncated backpropagation through time.
HiddenState detached(const HiddenState& state);

class RecurrentPart : public torch::nn::Module {
 public:
  explicit RecurrentPart(const LanguageModelSizes& sizes);

  // float {rows, columns, width} to float {rows, columns, hidden}; replaces `state`.
  torch::Tensor forward(const torch::Tensor& embedded, HiddenState& state);

 private:
  LanguageModelSizes sizes_;
  torch::nn::LSTM lstm_{nullptr};
};

// The same for weights that may live elsewhere, in the order of RecurrentPart's parameters.
struct RecurrentWeights {
  std::vector<torch::Tensor> tensors;
  bool training = false;
};
torch::Tensor recurrent_forward(const LanguageModelSizes& sizes, const RecurrentWeights& weights,
                                const torch::Tensor& embedded, HiddenState& state);

// Mean cross-entropy, natural logarithm, of scores {rows, columns, words} against {rows, columns}.
torch::Tensor word_loss(const torch::Tensor& scores, const torch::Tensor& targets);

}  // namespace rehearsal::models
