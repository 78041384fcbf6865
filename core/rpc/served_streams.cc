// The callee's side of streams: calls that it answers by many values.
#include "core/rpc/served_calls.h"

namespace rehearsal {

// A function that waits for the reader of its stream leaves its place among those that execute at
// once: the reader may need one meanwhile.
void ServedCalls::open_stream(ServedCall& served, bool counts) {
  auto on_waiting = [this, counts](bool waits) {
    if (!counts) return;
    if (!waits) {
      ++running_outer_;
    } else {
      --running_outer_;
      start_queued();
    }
  };
  served.stream =
      std::make_unique<OutgoingStream>(OutgoingStreamParts{.options = session_options_,
                                                           .mailbox = mailbox_,
                                                           .sessions = sessions_,
                                                           .forks = forks_,
                                                           .records = records_,
                                                           .on_waiting = std::move(on_waiting)},
                                       served.caller, served.call, std::string(served.label));
}

void ServedCalls::on_credit(const Credit& credit) {
  const auto found = served_.find(credit.call);
  if (found == served_.end() || !found->second->stream)
    return mailbox_.mark("credit came for a stream that has ended");
  found->second->stream->on_credit(credit.items);
}

void ServedCalls::end_stream(const std::shared_ptr<ServedCall>& served, MaybeError error) {
  const uint64_t items = served->stream ? served->stream->items() : 0;
  if (served->stream)
    served->stream->close({.kind = ErrorKind::cancelled,
                           .text = "the stream has ended: its function has returned",
                           .worker = mailbox_.name(),
                           .function = std::string(served->label)});
  const std::optional<ErrorKind> failed = error ? std::optional(error->kind) : std::nullopt;
  sessions_.send(served->caller, Message{End{served->call.id, items, std::move(error)}});
  forget(served, failed);
}

}  // namespace rehearsal
