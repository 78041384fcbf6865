#include "core/calls/hooks.h"

#include <utility>

#include "core/session/session.h"

namespace rehearsal {

void RecordHook::follow_call(const AutogradContextId& context, WorkerId to, SendOptions& options) {
  call_sent(context, to);
  options.on_acknowledged = [this, context, to] { call_delivered(context, to); };
  options.on_withdrawn = [this, context, to, before = std::move(options.on_withdrawn)]() mutable {
    if (before) before();
    call_delivered(context, to);
  };
}

}  // namespace rehearsal
