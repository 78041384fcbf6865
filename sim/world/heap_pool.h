#pragma once

#include <c10/core/Allocator.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/buffer_pool.h"

namespace rehearsal::sim {

// The BufferPool of simulated workers: memory of the heap, kept for the next segment of its size
// class; for devices, if there are any, pinned memory. Segments may outlive the pool.
// Single-threaded.
class HeapPool final : public BufferPool {
 public:
  // `pinned` gives memory that devices copy from by themselves, and outlives all segments. Null:
  // there are no devices.
  explicit HeapPool(c10::Allocator* pinned = nullptr);
  ~HeapPool() override;

  Segment take(uint64_t bytes, SegmentUse use) override;

  // Segments that somebody still owns.
  [[nodiscard]] uint64_t outstanding() const;

 private:
  struct Shelves;
  c10::Allocator* const pinned_;
  const std::shared_ptr<Shelves> shelves_;
};

}  // namespace rehearsal::sim
