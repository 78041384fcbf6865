#include "scenarios/rnn/text_share.h"

namespace rehearsal::rnn {

TextShare::TextShare(models::LanguageModelSizes sizes, const torch::Tensor& rows, int64_t steps,
                     ModelRefs model)
    : sizes_(sizes), batches_(text::make_batches(rows, steps)), model_(std::move(model)) {}

torch::Tensor TextShare::loss(int64_t number, const models::RecurrentWeights& weights) {
  const text::Batch& batch = batches_.at(static_cast<size_t>(number));
  const c10::Device device = weights.tensors.front().device();
  state_ = number == 0 ? models::initial_state(sizes_, batch.inputs.size(1), device)
                       : models::detached(state_);
  const torch::Tensor embedded =
      model_.table.rpc_sync(&ServedTable::forward, batch.inputs.to(device)).to(device);
  const torch::Tensor output = models::recurrent_forward(sizes_, weights, embedded, state_);
  const torch::Tensor scores = model_.decoder.rpc_sync(&ServedDecoder::forward, output).to(device);
  return models::word_loss(scores, batch.targets.to(device));
}

torch::Tensor TextShare::served_loss(int64_t number, const std::vector<torch::Tensor>& weights) {
  return loss(number, {weights, /*training=*/true});
}

int64_t TextShare::word_count(int64_t number) const {
  return batches_.at(static_cast<size_t>(number)).targets.numel();
}

void register_text_share(FunctionRegistry& registry) {
  registry.type<TextShare>("TextShare")
      .constructor<models::LanguageModelSizes, torch::Tensor, int64_t, ModelRefs>()
      .method("loss", &TextShare::served_loss);
}

}  // namespace rehearsal::rnn
