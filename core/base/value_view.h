#pragma once

#include <vector>

#include "core/base/ids.h"

namespace rehearsal {

// A value that a node keeps for its references, or as a state of its worker, as seen from outside.
struct ValueView {
  CausalId id;                  // of its reference; a state has none
  const void* value = nullptr;  // good until something happens at the node
  // A method of it, or what is done in a state's monitor, has begun and not ended: it waits for
  // something, or is about to go on.
  bool busy = false;
};
using ValueViews = std::vector<ValueView>;

}  // namespace rehearsal
