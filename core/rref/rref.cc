#include "core/api/rref.h"

namespace rehearsal::detail {
namespace {

// Asks the owner, unless that is here. The handle lives until `asked` is complete.
void ask(const std::shared_ptr<RRefHandle>& handle, Draft&& draft,
         const std::shared_ptr<FutureState<Unit>>& asked) {
  const auto complete = [handle, asked](Status status) {
    if (!status.ok()) handle->set_created(nullptr);  // The next caller asks anew.
    asked->complete(std::move(status));
  };
  if (handle->is_owner())
    return handle->references().local_value(handle->id(), [complete](Result<HeldValue> value) {
      complete(value.ok() ? Status(Unit{}) : Status(value.error()));
    });
  handle->caller()->start(std::move(draft), [complete](Result<Answer>&& answer) {
    complete(answer.ok() ? Status(Unit{}) : Status(answer.error()));
  });
}

}  // namespace

Future<Unit> created(const std::shared_ptr<RRefHandle>& handle, Timeout timeout) {
  Draft draft = fetch_draft(handle, timeout);
  draft.call.kind = CallKind::await;
  draft.function = "RRef.created";
  draft.call.context.reset();  // It brings nothing.
  const std::shared_ptr<NodeStrand> strand = handle->caller()->strand();
  auto state = std::make_shared<FutureState<Unit>>(strand, draft.call.id);
  auto question = std::make_unique<Draft>(std::move(draft));
  strand->post([handle, state, question = std::move(question)] {
    const bool is_first = handle->created() == nullptr;
    if (is_first)
      handle->set_created(std::make_shared<FutureState<Unit>>(state->strand(), state->source()));
    const std::shared_ptr<FutureState<Unit>> asked = handle->created();
    asked->observe(
        [state](FutureCore& asked) { state->complete(FutureState<Unit>::of(asked).result()); });
    if (is_first) ask(handle, std::move(*question), asked);
  });
  return Future<Unit>(state);
}

std::string text_of(const std::shared_ptr<RRefHandle>& handle) {
  if (handle == nullptr) return "an empty RRef";
  std::string text = "RRef " + to_string(handle->id().causal) + " owned by '" +
                     handle->caller()->names()[handle->id().owner.value] + "'";
  if (handle->fork())
    text +=
        ", fork " + to_string(*handle->fork()) + " of '" + handle->caller()->strand()->name() + "'";
  return text;
}

HeldValue await_local_value(const RRefHandle& handle, const std::type_index& type,
                            Streams* streams) {
  const Caller& caller = *handle.caller();
  if (!handle.is_owner())
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "the value is not here: it lives at '" +
                            caller.names()[handle.id().owner.value] + "' (use to_here)",
                    .worker = caller.strand()->name()});
  std::optional<Result<HeldValue>> slot;
  const Status status =
      caller.strand()->wait("a reference's value", handle.id().causal, [&](WaitHandle wait) {
        handle.references().local_value(handle.id(),
                                        [&slot, &handle, wait](Result<HeldValue> value) {
                                          if (!wait.lasts()) return;
                                          if (value.ok())
                                            handle.set_value_streams(value.value().streams);
                                          slot.emplace(std::move(value));
                                          wait.end();
                                        });
      });
  if (!status.ok()) throw RpcError(status.error());
  HeldValue value = std::move(*slot).or_throw();
  if (value.type->type != type)
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "the reference's value is of another type",
                    .worker = caller.strand()->name()});
  if (value.streams != nullptr && !caller.strand()->mutants().on(Mutant::local_value_read_early))
    StreamSet::current(caller.strand()->devices())->after(*value.streams);
  if (streams != nullptr) *streams = value.streams;
  return value;
}

InValueStreams::InValueStreams(const RRefHandle& handle, const Streams& streams)
    : between_(handle.caller()->strand()->devices(),
               handle.caller()->strand()->mutants().on(Mutant::local_value_in_other_streams)
                   ? nullptr
                   : streams) {}

bool enter_monitor(const RRefHandle& handle) {
  bool entered = false;
  const std::shared_ptr<NodeStrand>& strand = handle.caller()->strand();
  Execution* const execution = strand->running_or_null();
  const Status status = strand->wait("a value's monitor", handle.id().causal, [&](WaitHandle wait) {
    entered = handle.references().enter_monitor(handle.id(), execution, wait);
  });
  if (!status.ok()) throw RpcError(status.error());
  return entered;
}

void leave_monitor(const RRefHandle& handle) {
  const std::shared_ptr<NodeStrand>& strand = handle.caller()->strand();
  Execution* const execution = strand->running_or_null();
  strand->post([references = &handle.references(), id = handle.id(), execution] {
    references->leave_monitor(id, execution);
  });
}

}  // namespace rehearsal::detail
