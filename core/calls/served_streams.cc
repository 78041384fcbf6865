// The callee's side of streams: calls that it answers by many values.
#include "core/calls/served_calls.h"
#include "core/session/session.h"

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
      std::make_shared<OutgoingStream>(OutgoingStreamParts{.options = session_options_,
                                                           .strand = strand_,
                                                           .sessions = sessions_,
                                                           .forks = forks_,
                                                           .records = records_,
                                                           .devices = served.devices,
                                                           .on_waiting = std::move(on_waiting)},
                                       served.caller, served.call, std::string(served.label));
}

void ServedCalls::on_credit(WorkerId from, const Credit& credit) {
  const auto found = served_.find(credit.call);
  if (found == served_.end()) return strand_.mark("credit came for a stream that has ended");
  const ServedCall& served = *found->second;
  if (served.caller != from || !served.stream)
    return sessions_.accuse(from, {"Credit.call", "is no stream that has begun"});
  // It takes what has been sent at most.
  if (credit.items > served.stream->items() &&
      credit.items - served.stream->items() > served.call.credit)
    return sessions_.accuse(from, {"Credit.items", "is more than its window"});
  found->second->stream->on_credit(credit.items);
}

// As the answer of a call does, a stream's end may carry an exception, with its tensors and
// references.
SendOptions ServedCalls::put_exception(WorkerId to, const EncodedException& exception, End& end) {
  Payload value = exception.payload();
  if (Status sent = forks_->prepare_forks(to, end.call, kResultForks, value); !sent.ok()) {
    end.error = sent.error();
    return {};
  }
  SendOptions options;
  if (!value.forks.empty())
    options.on_withdrawn = [this, to, forks = value.forks] { forks_->undo_forks(to, forks); };
  if (!value.tensors.empty()) {
    End changed = end;
    changed.value.forks = value.forks;
    options.carried =
        std::make_unique<CarriedTensors>(CarriedTensors{.tensors = carried_tensors(value),
                                                        .instead = Message{std::move(changed)},
                                                        .on_changed = {}});
  }
  end.value = std::move(value);
  end.exception = exception.position() + 1;
  return options;
}

void ServedCalls::end_stream(const std::shared_ptr<ServedCall>& served, MaybeError error) {
  const uint64_t items = served->stream ? served->stream->items() : 0;
  if (served->stream)
    served->stream->close({.kind = ErrorKind::cancelled,
                           .text = "the stream has ended: its function has returned",
                           .worker = strand_.name(),
                           .function = std::string(served->label)});
  const std::optional<ErrorKind> failed = error ? std::optional(error->kind) : std::nullopt;
  const auto exception =
      error ? std::static_pointer_cast<const EncodedException>(error->exception) : nullptr;
  if (error) error->exception.reset();
  End end{served->call.id, items, std::move(error)};
  SendOptions options;
  if (exception != nullptr) options = put_exception(served->caller, *exception, end);
  sessions_.send(served->caller, Message{std::move(end)}, std::move(options));
  forget(served, failed);
}

}  // namespace rehearsal
