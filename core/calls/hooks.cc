#include "core/calls/hooks.h"

#include <algorithm>
#include <utility>

#include "core/session/session.h"

namespace rehearsal {

bool bring_gradients(const std::vector<at::Tensor>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
    return tensor.defined() && tensor.requires_grad();
  });
}

void RecordHook::follow_call(const AutogradContextId& context, WorkerId to, SendOptions& options) {
  call_sent(context, to);
  options.on_acknowledged = [this, context, to] { call_delivered(context, to); };
  options.on_withdrawn = [this, context, to, before = std::move(options.on_withdrawn)]() mutable {
    if (before) before();
    call_delivered(context, to);
  };
}

}  // namespace rehearsal
