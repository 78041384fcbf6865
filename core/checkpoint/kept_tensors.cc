#include "core/checkpoint/kept_tensors.h"

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <sstream>

#include "core/checkpoint/checkpoint_desk.h"

namespace rehearsal {
namespace {

void check_piece(const c10::IValue& piece, const std::string& name, const at::Tensor& into,
                 const std::string& worker) {
  if (piece.isTensor() && piece.toTensor().sizes() == into.sizes()) return;
  std::ostringstream text;
  text << "'" << name << "' has the shape " << into.sizes() << " here, and was saved as ";
  if (piece.isTensor())
    text << piece.toTensor().sizes();
  else
    text << piece.tagKind();
  fail_checkpoint(ErrorKind::storage, text.str(), worker);
}

}  // namespace

void keep_tensors(const WorkerAccess& here, const CheckpointOrder& order,
                  const NamedTensors& tensors) {
  at_desk(here, [&](CheckpointDesk& desk) {
    for (const auto& [name, tensor] : tensors) {
      desk.name_tensor(order, name, tensor);
      desk.keep_copy(order, name, tensor);
    }
  });
}

std::vector<std::string> load_tensors(const WorkerAccess& here, const CheckpointOrder& order,
                                      const NamedTensors& tensors) {
  const bool goes_on = at_desk(here, [&](CheckpointDesk& desk) {
    for (const auto& [name, tensor] : tensors) desk.name_tensor(order, name, tensor);
    return desk.goes_on(order);
  });
  if (!goes_on) return {};
  std::vector<std::string> names;
  for (const auto& named : tensors) names.push_back(named.first);
  const std::vector<c10::IValue> pieces = find_pieces(here, order, names);
  for (size_t i = 0; i < tensors.size(); ++i)
    check_piece(pieces[i], names[i], tensors[i].second, here.name());
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < tensors.size(); ++i) {
    at::Tensor into = tensors[i].second;
    into.copy_(pieces[i].toTensor());
  }
  return names;
}

NamedTensors tensors_of(const torch::nn::Module& module, const std::string& name) {
  NamedTensors tensors;
  for (const auto& parameter : module.named_parameters())
    tensors.emplace_back(name + "." + parameter.key(), parameter.value());
  for (const auto& buffer : module.named_buffers())
    if (buffer.value().defined()) tensors.emplace_back(name + "." + buffer.key(), buffer.value());
  return tensors;
}

}  // namespace rehearsal
