#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace rehearsal::real {

// fold_segment_checksum of core/base/frame.h, piece by piece: the bytes are hashed while they are
// in the cache, as they are written or as they arrive.
class SegmentChecksum {
 public:
  SegmentChecksum();
  ~SegmentChecksum();
  SegmentChecksum(SegmentChecksum&&) noexcept;
  SegmentChecksum& operator=(SegmentChecksum&&) noexcept;

  void restart() { value_ = 0; }
  void begin_segment();
  void update(std::span<const std::byte> bytes);
  void end_segment();

  // Of the segments that have ended.
  [[nodiscard]] uint64_t value() const { return value_; }

 private:
  struct State;
  uint64_t value_ = 0;
  std::unique_ptr<State> state_;
};

}  // namespace rehearsal::real
