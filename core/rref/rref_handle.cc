#include "core/api/rref_handle.h"

#include "core/session/mutants.h"

namespace rehearsal {

RRefHandle::~RRefHandle() {
  if (!caller_->strand()->closed() && references_->mutants().on(Mutant::handle_released_in_place)) {
    references_->release(id_, fork_);
    return;
  }
  const uint64_t tag = mix(CausalIdHash()(id_.causal), fork_ ? CausalIdHash()(*fork_) : 0);
  caller_->strand()->post(Tagged(
      tag, [references = references_, id = id_, fork = fork_] { references->release(id, fork); }));
}

}  // namespace rehearsal
