// All ways to lose a gradient: each is an error that names the call.
#pragma once

#include <cstdint>

#include "scenarios/traps/ground.h"

namespace rehearsal::traps {

// Steps into each trap. Returns their number. Parks. Throws Trapped if one was silent or named
// something else, and the RpcError of a worker that was lost meanwhile.
[[nodiscard]] int64_t step_into_traps(const Ground& ground);

}  // namespace rehearsal::traps
