#pragma once

#include <c10/core/Allocator.h>

#include <functional>
#include <memory>

#include "core/base/buffer_pool.h"

namespace rehearsal::real {

struct SlabPoolOptions {
  // Free memory above this is given back to the system.
  uint64_t idle_bytes_max = uint64_t{256} << 20;
  // Gives memory that devices copy from by themselves, and recycles it; outlives all segments.
  // Null: there are no devices.
  c10::Allocator* pinned = nullptr;
};

// Segments from recycled slabs: touching fresh memory costs more than receiving into it. Sizes are
// rounded up to classes, four to each power of two. A slab that is used again is the one freed
// last. A fresh slab of a megabyte or more takes no memory before its bytes arrive. Thread-safe.
// Segments may outlive the pool.
class SlabPool final : public BufferPool {
 public:
  explicit SlabPool(const SlabPoolOptions& options = {});
  ~SlabPool() override;

  [[nodiscard]] Segment take(uint64_t bytes, SegmentUse use) override;

  struct Census {
    uint64_t taken = 0;       // segments handed out so far, but for pinned ones
    uint64_t recycled = 0;    // of them, from a slab that had been used before
    uint64_t in_use = 0;      // segments that have not come back
    uint64_t idle_bytes = 0;  // kept for the next
  };
  [[nodiscard]] Census census() const;
  // The same, also when the pool is gone.
  [[nodiscard]] std::function<Census()> watch() const;

 private:
  class Slabs;
  std::shared_ptr<Slabs> slabs_;
};

}  // namespace rehearsal::real
