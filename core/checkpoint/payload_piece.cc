#include <ATen/Functions.h>

#include <cstring>

#include "core/api/checkpoint_parts.h"
#include "core/checkpoint/checkpoint_desk.h"
#include "core/checkpoint/plain_pickle.h"

namespace rehearsal::detail {

c10::IValue payload_piece(Payload payload) {
  if (!payload.handles.empty())
    fail_checkpoint(ErrorKind::bad_arguments, "a value that holds references cannot be saved");
  const auto size = static_cast<int64_t>(payload.values.size());
  at::Tensor bytes = at::empty({size}, at::kByte);
  std::memcpy(bytes.data_ptr(), payload.values.data(), payload.values.size());
  c10::impl::GenericList tensors(c10::AnyType::get());
  for (const at::Tensor& tensor : payload.tensors) tensors.emplace_back(to_piece(tensor));
  c10::impl::GenericDict piece = any_dictionary();
  piece.insert("bytes", bytes);
  piece.insert("tensors", tensors);
  return piece;
}

Payload piece_payload(const c10::IValue& piece) {
  Payload payload;
  try {
    const c10::impl::GenericDict fields = piece.toGenericDict();
    const at::Tensor bytes = fields.at("bytes").toTensor().contiguous();
    payload.values.assign(static_cast<const char*>(bytes.const_data_ptr()),
                          static_cast<size_t>(bytes.numel()));
    const c10::impl::GenericList tensors = fields.at("tensors").toList();
    for (size_t i = 0; i < tensors.size(); ++i)
      payload.tensors.push_back(tensors.get(i).toTensor());
  } catch (const std::exception& error) {
    fail_checkpoint(ErrorKind::storage,
                    "a piece is not a value of the program's own: " + in_one_line(error));
  }
  return payload;
}

}  // namespace rehearsal::detail
