#pragma once

#include <optional>

#include "core/base/execution.h"
#include "core/base/time.h"

namespace rehearsal {

// The calls that an execution makes end by their own time-outs, and by these.
struct CallBounds {
  std::optional<Instant> deadline;  // by then they are answered, or fail
  bool shielded = false;            // they go on when whoever waits for the execution gives up
};

// Of the calls that it makes now, on the stack that runs it. It is shielded by a Shield
// (core/api/shield.h), and while its stack unwinds: whoever waits for the execution does not wait
// for the calls of its destructors, whose time does not follow from how long that one waits.
[[nodiscard]] CallBounds call_bounds(const Execution& running);

}  // namespace rehearsal
