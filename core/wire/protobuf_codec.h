#pragma once

#include <cstdint>
#include <memory>

#include "core/base/codec.h"
#include "core/values/payload.h"

namespace rehearsal {

// The codec: an envelope (call_envelope.h for calls and responses, messages.proto for the others)
// and one segment for each tensor with elements. A contiguous tensor's segment is its storage's
// memory; of a view only its own elements are sent. Received tensors wrap their segments. Only
// dense tensors on the CPU are sent; others are refused before encoding (see
// core/values/tensor_form.h).
//
// The memory that an envelope becomes is bounded before it is read (decoded_weight.h); beyond that
// it is malformed. `decoded_bytes`: of the payloads that are decoded.
[[nodiscard]] std::unique_ptr<Codec> make_protobuf_codec(uint64_t decoded_bytes = kDecodedBytes);

}  // namespace rehearsal
