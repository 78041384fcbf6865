#include "core/rref/rref_handle.h"

#include "core/rref/rref_context.h"

namespace rehearsal {

RRefHandle::~RRefHandle() {
  if (!caller_->mailbox()->closed() && context_->mutants().on(Mutant::handle_released_in_place)) {
    context_->release(id_, fork_);
    return;
  }
  caller_->mailbox()->post(
      [context = context_, id = id_, fork = fork_] { context->release(id, fork); });
}

}  // namespace rehearsal
