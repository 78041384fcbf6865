#pragma once

#include <optional>

#include "core/base/execution.h"
#include "core/base/time.h"

namespace rehearsal {

// What ends the calls that an execution makes, beside their own time-outs.
struct CallBounds {
  std::optional<Instant> deadline;  // by then they are answered, or fail
  bool shielded = false;            // they go on when whoever waits for the execution gives up
};

// Of the calls that it makes now, on the stack that runs it. It is shielded by a Shield
// (core/api/shield.h), and while its stack unwinds: what destructors call is not wanted by whoever
// waits for the execution, and has nothing to do with how long that one waits.
[[nodiscard]] CallBounds call_bounds(const Execution& running);

}  // namespace rehearsal
