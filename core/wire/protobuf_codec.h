#pragma once

#include <memory>

#include "core/base/codec.h"

namespace rehearsal {

// The codec: an envelope (call_envelope.h for calls and responses, messages.proto for the others)
// and one segment for each tensor with elements. A contiguous tensor's segment is its storage's
// memory; of a view only its own elements are sent. Received tensors wrap their segments. Only
// dense tensors on the CPU are sent; others are refused before encoding (see
// core/values/tensor_form.h).
[[nodiscard]] std::unique_ptr<Codec> make_protobuf_codec();

}  // namespace rehearsal
