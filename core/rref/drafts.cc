#include "core/api/drafts.h"

#include "core/base/short_text.h"

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

void check_operator_name(const Caller& caller, WorkerId to, const std::string& name) {
  if (name.size() <= kOperatorNameMax) return;
  const std::string known = short_name(name);
  throw RpcError({.kind = ErrorKind::unknown_function,
                  .text = "there is no operator '" + known + "': a name has " +
                          std::to_string(kOperatorNameMax) + " bytes at most",
                  .worker = caller.names()[to.value],
                  .function = known});
}

}  // namespace rehearsal
