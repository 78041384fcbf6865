#pragma once

#include <c10/core/Allocator.h>

namespace rehearsal::sim::device {

// Memory of the host that devices copy from and to by themselves (`tensor.pin_memory()`): a copy
// from it with `non_blocking` reads it later, one from other memory reads it at once.
[[nodiscard]] c10::Allocator* pinned_memory();
[[nodiscard]] bool is_pinned(const void* address);
// Other memory that devices can copy from, for as long as this lives.
class PinnedRange {
 public:
  PinnedRange(void* begin, size_t bytes);
  ~PinnedRange();
  PinnedRange(const PinnedRange&) = delete;
  PinnedRange& operator=(const PinnedRange&) = delete;

 private:
  void* const begin_;
};

}  // namespace rehearsal::sim::device
