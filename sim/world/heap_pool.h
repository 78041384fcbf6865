#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/buffer_pool.h"

namespace rehearsal::sim {

// The BufferPool of simulated workers: memory of the heap, kept for the next segment of its size
// class. Segments may outlive the pool. Single-threaded.
class HeapPool final : public BufferPool {
 public:
  HeapPool();
  ~HeapPool() override;

  Segment take(uint64_t bytes, SegmentDevice device) override;

  // Segments that somebody still owns.
  [[nodiscard]] uint64_t outstanding() const;

 private:
  struct Shelves;
  const std::shared_ptr<Shelves> shelves_;
};

}  // namespace rehearsal::sim
