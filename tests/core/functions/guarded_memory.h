#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>

namespace rehearsal {

// Memory of tensors that tells on whoever leaves it: each allocation ends at a page that may not be
// touched, and what lies before it is looked at when it is given back. It is filled with a byte, so
// that a result which depends on that byte shows memory that nobody has written.
class GuardedMemory final : public c10::Allocator {
 public:
  // More than this at once is refused as LibTorch refuses it, and counted.
  explicit GuardedMemory(size_t bytes_max) : bytes_max_(bytes_max) {}

  c10::DataPtr allocate(size_t bytes) override;
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, size_t bytes) const override;

  void fill_with(uint8_t byte) { byte_ = byte; }
  [[nodiscard]] uint64_t refused() const { return refused_; }

 private:
  const size_t bytes_max_;
  uint8_t byte_ = 0;
  uint64_t refused_ = 0;
};

}  // namespace rehearsal
