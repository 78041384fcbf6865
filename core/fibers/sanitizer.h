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

// Right before a jump to the stack at `target`. `frames` keeps what belongs to the stack that is
// left; null if that stack ends here.
inline void announce_switch([[maybe_unused]] void** frames,
                            [[maybe_unused]] const StackBounds& target) {
#if defined(REHEARSAL_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(frames, target.bottom, target.size);
#endif
}

// Right after a jump, on the stack that was entered. `frames` is what it kept when it was left,
// null at its start. Tells where the stack lies that was left.
inline StackBounds finish_switch([[maybe_unused]] void* frames) {
  StackBounds left;
#if defined(REHEARSAL_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(frames, &left.bottom, &left.size);
#endif
  return left;
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
