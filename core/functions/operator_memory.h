#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <stdexcept>

namespace rehearsal {

// Too much memory was asked for.
class MemoryRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// While it lives, tensors on this thread take `bytes_max` of the CPU's memory in all, what is given
// back meanwhile included: LibTorch asks before it takes any, and more is refused with a
// MemoryRefused. One at a time on a thread, for code that does not park.
//
// The first one ever puts an allocator in front of LibTorch's, which only counts. A program that
// replaces LibTorch's allocator does so before it serves anybody, or the limit is off.
class OperatorMemory {
 public:
  explicit OperatorMemory(uint64_t bytes_max);

 private:
  c10::DebugInfoGuard guard_;
};

// Throws MemoryRefused.
[[noreturn]] void refuse_memory(uint64_t bytes, uint64_t bytes_max);

}  // namespace rehearsal
