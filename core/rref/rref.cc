#include "core/rref/rref.h"

namespace rehearsal::detail {

HeldValue await_local_value(const RRefHandle& handle, const std::type_index& type) {
  const Caller& caller = *handle.caller();
  if (!handle.is_owner())
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "the value is not here: it lives at '" +
                            caller.names()[handle.id().owner.value] + "' (use to_here)",
                    .worker = caller.mailbox()->name()});
  std::optional<Result<HeldValue>> slot;
  const Status status =
      caller.mailbox()->wait("a reference's value", handle.id().causal, [&](WaitHandle wait) {
        handle.context().local_value(handle.id(), [&slot, wait](Result<HeldValue> value) {
          if (!wait.lasts()) return;
          slot.emplace(std::move(value));
          wait.end();
        });
      });
  if (!status.ok()) throw RpcError(status.error());
  HeldValue value = std::move(*slot).or_throw();
  if (value.type->type != type)
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "the reference's value is of another type",
                    .worker = caller.mailbox()->name()});
  return value;
}

bool enter_monitor(const RRefHandle& handle) {
  bool entered = false;
  const std::shared_ptr<Mailbox>& mailbox = handle.caller()->mailbox();
  Execution* const execution = mailbox->running_or_null();
  const Status status =
      mailbox->wait("a value's monitor", handle.id().causal, [&](WaitHandle wait) {
        entered = handle.context().enter_monitor(handle.id(), execution, wait);
      });
  if (!status.ok()) throw RpcError(status.error());
  return entered;
}

void leave_monitor(const RRefHandle& handle) {
  const std::shared_ptr<Mailbox>& mailbox = handle.caller()->mailbox();
  Execution* const execution = mailbox->running_or_null();
  mailbox->post([context = &handle.context(), id = handle.id(), execution] {
    context->leave_monitor(id, execution);
  });
}

}  // namespace rehearsal::detail
