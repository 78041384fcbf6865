#pragma once

#include <cstdint>
#include <string>

#include "core/base/frame.h"
#include "core/base/trace.h"

namespace rehearsal::record {

// An act of a node, an order to its transport or an event of its trace, as one word: its kind in
// the highest byte, a hash of all else in the others.
enum class Order : uint8_t { open = 0xF0, send, close, stop };

[[nodiscard]] uint64_t digest_of(const Event& event);
// `number`: what the order is about, hashed.
[[nodiscard]] uint64_t digest_of(Order order, WorkerId peer, uint64_t number = 0);
// All bytes of a frame: its header, its envelope, its tensors.
[[nodiscard]] uint64_t hash_of(const Frame& frame);

// The kind that a digest tells, for people.
[[nodiscard]] std::string kind_text(uint64_t digest);

}  // namespace rehearsal::record
