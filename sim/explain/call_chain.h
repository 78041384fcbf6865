#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sim/explain/chronicle.h"

namespace rehearsal::sim {

// The way of a failure through the calls of the program: from the main, call by call, to where the
// exception was thrown first, and back over the answers and the throws that handed it on.
struct CallChain {
  std::vector<size_t> moments;   // in order; of each message its sending
  std::optional<size_t> origin;  // where it was thrown first
};

// Of a run whose failing moment is a throw; of another failing moment, the calls that led to the
// message or execution that it is about. Empty of a run that holds.
[[nodiscard]] CallChain call_chain(const Chronicle& chronicle);

}  // namespace rehearsal::sim
