// All ways to call in a context: each gives the gradients of one process.
#pragma once

#include <cstdint>

#include "scenarios/traps/ground.h"

namespace rehearsal::traps {

// Tries each way and compares all gradients, bit by bit. Returns their number. Parks. Throws
// Trapped, or the RpcError of a way.
[[nodiscard]] int64_t compare_recorded(const Ground& ground);

}  // namespace rehearsal::traps
