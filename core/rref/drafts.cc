#include "core/api/drafts.h"

namespace rehearsal {

Draft fetch_draft(const std::shared_ptr<RRefHandle>& handle, Timeout timeout) {
  if (handle == nullptr)
    throw RpcError({.kind = ErrorKind::bad_arguments, .text = "the reference is empty"});
  Draft draft = handle->caller()->draft(handle->id().owner);
  draft.call.kind = CallKind::fetch;
  draft.target = handle;
  draft.timeout = timeout;
  draft.function = "to_here";
  return draft;
}

}  // namespace rehearsal
