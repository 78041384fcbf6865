#pragma once

#include <cstdint>

#include "core/base/frame.h"
#include "core/base/result.h"

namespace rehearsal::net_fake {

// The length of a frame on the wire, in bits.
[[nodiscard]] uint64_t wire_bits(const Frame& frame);

// The error that a receiver finds in the frame if the bit of this number has flipped on its way. Ok
// would mean that it takes the frame for whole.
[[nodiscard]] Status check_with_flipped_bit(const Frame& frame, uint64_t bit);

}  // namespace rehearsal::net_fake
