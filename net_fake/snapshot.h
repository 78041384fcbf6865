#pragma once

#include "core/base/buffer_pool.h"
#include "core/base/frame.h"

namespace rehearsal::net_fake {

// The frame as its receiver will find it: what the segments hold now, in memory of the receiver's
// pool. A frame without segments shares its body, which nobody changes.
[[nodiscard]] Frame snapshot(Frame&& frame, BufferPool& pool);

// The same by way of bytes: written, checked and parsed again, as on a real connection.
[[nodiscard]] Frame snapshot_through_bytes(const Frame& frame, BufferPool& pool);

}  // namespace rehearsal::net_fake
