#pragma once

#include <cstdint>

namespace rehearsal::sim {

// How often this program's own code has called, on this thread, what sets the precision of float32
// operations: at::globalContext().setFloat32Precision and its like. A look at the context's own
// bytes does not see what they set.
//
// The linker counts, as it guards clocks (clock_guard.h): calls inside shared libraries do not come
// here.
[[nodiscard]] uint64_t precision_calls();

}  // namespace rehearsal::sim
