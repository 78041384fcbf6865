#pragma once

#include "core/base/ids.h"

namespace rehearsal {

// Names the pair of a send and a receive function that one message of a context made: its tensors
// went one way, their gradients come back the other way.
struct GradientRoute {
  AutogradContextId context;
  AutogradMessageId message;
  WorkerId peer;  // the worker at the other end
};

}  // namespace rehearsal
