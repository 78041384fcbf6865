#pragma once

#include <c10/core/Allocator.h>

namespace rehearsal::sim::device {

// Memory of the host that devices copy from and to by themselves (`tensor.pin_memory()`): a copy
// from it with `non_blocking` reads it later, one from other memory reads it at once.
[[nodiscard]] c10::Allocator* pinned_memory();
[[nodiscard]] bool is_pinned(const void* address);

}  // namespace rehearsal::sim::device
