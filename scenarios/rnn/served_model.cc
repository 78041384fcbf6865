#include "scenarios/rnn/served_model.h"

#include <torch/nn/module.h>

namespace rehearsal::rnn {

void register_served_model(FunctionRegistry& registry) {
  registry.type<ServedTable>("EmbeddingTable")
      .constructor<int64_t, int64_t, double>()
      .method("place", &ServedTable::place)
      .method("forward", &ServedTable::forward)
      .method("train", &torch::nn::Module::train)
      .method("parameter_rrefs", &ServedTable::parameter_rrefs)
      .method("values", &ServedTable::values);
  registry.type<ServedDecoder>("Decoder")
      .constructor<int64_t, int64_t, double>()
      .method("place", &ServedDecoder::place)
      .method("forward", &ServedDecoder::forward)
      .method("train", &torch::nn::Module::train)
      .method("parameter_rrefs", &ServedDecoder::parameter_rrefs)
      .method("values", &ServedDecoder::values);
}

}  // namespace rehearsal::rnn
