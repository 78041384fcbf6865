#include "core/rref/rref_handle.h"

#include "core/rref/rref_context.h"

namespace rehearsal {

RRefHandle::~RRefHandle() {
  caller_->mailbox()->post(
      [context = context_, id = id_, fork = fork_] { context->release(id, fork); });
}

}  // namespace rehearsal
