#pragma once

#include <cstdint>

#include "core/base/frame.h"

namespace rehearsal {

// Gives the memory that arriving segments are read into. Thread-safe where its transport is
// threaded.
class BufferPool {
 public:
  virtual ~BufferPool() = default;

  // A segment of `bytes` in the host's memory, 64-byte aligned, contents undefined; never null for
  // bytes above zero. If a device is to read it and there are devices, it is pinned where there is
  // room, so that they copy it by themselves. The memory goes back when the last owner lets go, on
  // any thread. Throws std::bad_alloc if the system has no room.
  [[nodiscard]] virtual Segment take(uint64_t bytes, SegmentUse use) = 0;
};

}  // namespace rehearsal
