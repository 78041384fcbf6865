#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#if defined(__SANITIZE_ADDRESS__)
#define REHEARSAL_SEES_ALLOCATIONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REHEARSAL_SEES_ALLOCATIONS 1
#endif
#endif

#ifdef REHEARSAL_SEES_ALLOCATIONS
#include <sanitizer/allocator_interface.h>
#endif

namespace rehearsal {

// While one lives: how much more memory the process has held at most than at its beginning, and how
// much it has asked for at once. AddressSanitizer counts; without it nothing is known, and what a
// bound is checked against is 0. One at a time.
class HeldBytes {
 public:
  HeldBytes() {
    held() = 0;
    most() = 0;
#ifdef REHEARSAL_SEES_ALLOCATIONS
    static const int installed = __sanitizer_install_malloc_and_free_hooks(
        [](const volatile void*, size_t size) {
          const int64_t now = held() += static_cast<int64_t>(size);
          if (now > most()) most() = now;
        },
        [](const volatile void* memory) {
          if (memory != nullptr)
            held() -= static_cast<int64_t>(
                __sanitizer_get_allocated_size(const_cast<const void*>(memory)));
        });
    static_cast<void>(installed);
#endif
  }

  [[nodiscard]] uint64_t most_bytes() const { return static_cast<uint64_t>(most().load()); }

 private:
  static std::atomic<int64_t>& held() {
    static std::atomic<int64_t> bytes = 0;
    return bytes;
  }
  static std::atomic<int64_t>& most() {
    static std::atomic<int64_t> bytes = 0;
    return bytes;
  }
};

}  // namespace rehearsal
