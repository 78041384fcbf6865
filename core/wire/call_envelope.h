#pragma once

#include "core/base/frame.h"

// The envelopes of calls and responses, which are most of the messages: fixed fields,
// little-endian, where protobuf would cost more than the rest of a simulated call.
//
//   call:      form (1), kind, flags, function, id, time left, depth, sizes
//   response:  form (2), flags, id, sizes
//   both then: the bytes of the values, an entry for each tensor (type, flags, dimensions, sizes),
//              and, if the flags say so, what only some have as protobuf (CallRest, ResponseRest)
//
// No protobuf envelope begins with either form. Every other message is such an envelope.
namespace rehearsal {

struct Call;
struct Message;
struct Response;
class ScratchArena;

// Into an empty body.
void write_call(const Call& call, FrameBody& body, ScratchArena& scratch);
void write_response(const Response& response, FrameBody& body, ScratchArena& scratch);

// Whether the body claims to hold a call or a response.
[[nodiscard]] bool has_fixed_layout(const FrameBody& body);

// Reads it; every byte is checked, and must be used. Throws BadEnvelope.
// REQUIRES: has_fixed_layout(body).
void read_call_or_response(const FrameBody& body, Message& message, ScratchArena& scratch);

}  // namespace rehearsal
