#include "core/rref/rref_handle.h"

#include "core/rref/rref_context.h"

namespace rehearsal {

RRefHandle::~RRefHandle() {
  if (!caller_->mailbox()->closed() && context_->mutants().on(Mutant::handle_released_in_place)) {
    context_->release(id_, fork_);
    return;
  }
  const uint64_t tag = mix(CausalIdHash()(id_.causal), fork_ ? CausalIdHash()(*fork_) : 0);
  caller_->mailbox()->post(
      Tagged(tag, [context = context_, id = id_, fork = fork_] { context->release(id, fork); }));
}

}  // namespace rehearsal
