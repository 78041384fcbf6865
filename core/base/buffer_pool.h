#pragma once

#include <cstdint>

#include "core/base/frame.h"

namespace rehearsal {

// Gives the memory that arriving segments are read into. Thread-safe where its transport is
// threaded.
class BufferPool {
 public:
  virtual ~BufferPool() = default;

  // A segment of `bytes` on `device`, 64-byte aligned, contents undefined; never null for bytes
  // above zero. The memory goes back to the pool when the last owner lets go, on any thread.
  [[nodiscard]] virtual Segment take(uint64_t bytes, SegmentDevice device) = 0;
};

}  // namespace rehearsal
