#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/time.h"

namespace rehearsal {

// The waits of a node, as seen from outside: copies, in a fixed order.
struct WaitViews {
  // A stack that is parked.
  struct Stack {
    Hash128 path;       // of its execution: what it makes has this path; zero for a plain thread
    std::string label;  // a function's name; a worker's name for its main
    std::string what;   // what it waits for, for people
    CausalId id;        // the same, by name; may be empty
    // The path of the execution, of the same worker, that holds what it waits for; none: nobody
    // is known to.
    std::optional<Hash128> holder = std::nullopt;
    bool timed = false;  // it ends by itself at an instant that its code has given
    // How long it has waited so far, where it waits in a primitive of the program's.
    std::optional<Duration> waited = std::nullopt;
  };
  // A call that has not been answered. Its id has the path of the execution that made it, and its
  // place is the path of the execution that serves it.
  struct UnansweredCall {
    CausalId id;
    WorkerId to;
    std::string function;
  };
  std::vector<Stack> stacks;          // in the order of their slots
  std::vector<UnansweredCall> calls;  // in the order in which they were made
  std::string others;                 // backward passes, joining, shutdown: a line each
};

// The oldest message to a peer that has gone out on a link that stands, and is not acknowledged.
struct OwedAcknowledgement {
  WorkerId peer;
  uint64_t sequence = 0;
};

}  // namespace rehearsal
