#pragma once

#include "core/api/caller.h"
#include "core/autograd/contexts.h"

namespace rehearsal {

// The parameters of this worker are nobody else's while it lives. Parks at its start. Throws
// RpcError.
class ParametersGuard {
 public:
  explicit ParametersGuard(const Caller& caller);
  ~ParametersGuard();
  ParametersGuard(const ParametersGuard&) = delete;
  ParametersGuard& operator=(const ParametersGuard&) = delete;

 private:
  NodeStrand& strand_;
  AutogradContexts& contexts_;
};

}  // namespace rehearsal
