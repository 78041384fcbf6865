#include "core/api/rref_handle.h"

#include <c10/util/Exception.h>

#include "core/base/mutants.h"

namespace rehearsal {

namespace {

// Code that changes or frees the value comes after its readers.
void let_value_follow(const Streams& streams, const NodeStrand& strand) {
  if (strand.mutants().on(Mutant::value_changed_while_it_is_read)) return;
  try {
    streams->after(*StreamSet::current(strand.devices()));
  } catch (const c10::Error&) {
    // A device that has failed says so to all who wait for it; one that is gone does nothing more.
  }
}

}  // namespace

RRefHandle::~RRefHandle() {
  if (value_streams_ != nullptr) let_value_follow(value_streams_, *caller_->strand());
  if (!caller_->strand()->closed() && references_->mutants().on(Mutant::handle_released_in_place)) {
    references_->release(id_, fork_);
    return;
  }
  const uint64_t tag = mix(CausalIdHash()(id_.causal), fork_ ? CausalIdHash()(*fork_) : 0);
  caller_->strand()->post(Tagged(
      tag, [references = references_, id = id_, fork = fork_] { references->release(id, fork); }));
}

}  // namespace rehearsal
