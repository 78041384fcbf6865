#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/frame.h"

// How much memory an envelope may become, counted before it is read: a field of protobuf may have
// two bytes and become hundreds.
namespace rehearsal {

// The messages of messages.proto that are read by themselves.
enum class WireMessage : uint8_t { envelope, call_rest, response_rest };

// Throws BadEnvelope if these bytes of the body's envelope would become more than kDecodedBytes,
// and kDecodedRatio for each byte of it, or cannot be counted. Few bytes that are no such message
// may pass: reading finds them.
void check_weight(const FrameBody& body, std::string_view bytes, WireMessage message);

// The same for so many tensors of a fixed layout (call_envelope.h).
void check_tensor_weight(const FrameBody& body, uint64_t tensor_count);

}  // namespace rehearsal
