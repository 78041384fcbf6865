#pragma once

#include <cstddef>

// The notices that AddressSanitizer must get about fibers. Without it every function here does
// nothing.
#if defined(__SANITIZE_ADDRESS__)  // GCC
#define REHEARSAL_ADDRESS_SANITIZER
#elif defined(__has_feature)  // Clang
#if __has_feature(address_sanitizer)
#define REHEARSAL_ADDRESS_SANITIZER
#endif
#endif

#if defined(REHEARSAL_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif

namespace rehearsal::fibers {

// Where the stack that is about to be entered lies, as the sanitizer names it.
struct StackBounds {
  const void* bottom = nullptr;
  size_t size = 0;
};

// Right before a jump to the stack at `target`. Boost's functions, which jump, are not
// instrumented: so the arrival is told with the departure, and nothing needs to be told behind the
// jump. Works with detect_stack_use_after_return=0 only, with which no stack has frames elsewhere.
inline void announce_jump([[maybe_unused]] const StackBounds& target) {
#if defined(REHEARSAL_ADDRESS_SANITIZER)
  void* frames = nullptr;
  __sanitizer_start_switch_fiber(&frames, target.bottom, target.size);
  __sanitizer_finish_switch_fiber(frames, nullptr, nullptr);
#endif
}

// Memory that nobody may touch until `allow_access`.
inline void forbid_access([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#if defined(REHEARSAL_ADDRESS_SANITIZER)
  __asan_poison_memory_region(memory, bytes);
#endif
}

inline void allow_access([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#if defined(REHEARSAL_ADDRESS_SANITIZER)
  __asan_unpoison_memory_region(memory, bytes);
#endif
}

// Memory that stays as it is for as long as the process: what it owns is not lost.
inline void keep_reachable([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#if defined(REHEARSAL_ADDRESS_SANITIZER)
  __lsan_register_root_region(memory, bytes);
#endif
}

}  // namespace rehearsal::fibers
