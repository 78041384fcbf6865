#include "core/calls/outgoing_stream.h"

#include <algorithm>

#include "core/functions/stream_writer.h"
#include "core/session/session.h"

namespace rehearsal {

void detail::write_value(OutgoingStream& stream, Payload&& value) {
  stream.write(std::move(value));
}

const DeviceMap* detail::devices_of(const OutgoingStream& stream) { return stream.devices(); }
DeviceWay detail::lend_to_reader(const OutgoingStream& stream) { return stream.lend(); }

OutgoingStream::OutgoingStream(OutgoingStreamParts parts, WorkerId to, const Call& call,
                               std::string function)
    : parts_(std::move(parts)),
      to_(to),
      call_(call.id),
      context_(call.context),
      function_(std::move(function)),
      credit_(call.credit) {}

void OutgoingStream::write(Payload&& value) {
  std::optional<AutogradMetadata> autograd;
  if (context_)
    autograd = parts_.records->record_send(*context_, to_, RecordHook::CausedBy::receiver, value,
                                           "a value of the stream '" + function_ + "'");
  MaybeError failed;
  const Status waited =
      parts_.strand.wait("its caller to take values", call_, [&](WaitHandle writer) {
        take({std::move(value), std::move(autograd), std::move(writer), &failed});
      });
  if (!waited.ok()) throw RpcError(waited.error());
  if (failed) throw RpcError(*failed);
}

// Credit is a number of values: a caller that gives much and reads nothing would let them gather
// here, whatever their size.
bool OutgoingStream::may_send() const {
  // Not without end: nothing else would run meanwhile.
  const bool exceeds = parts_.options.mutants.on(Mutant::stream_without_credit);
  if (sent_ >= (exceeds ? 2 * credit_ : credit_)) return false;
  return sent_ == acknowledged_ || !parts_.sessions.any_waits(to_);
}

void OutgoingStream::take(Written&& written) {
  if (closed_) return refuse(std::move(written), *closed_);
  if (waiting_.empty() && may_send()) return send(std::move(written));
  parts_.strand.mark("a stream waits for its caller");
  waiting_.push_back(std::move(written));
  if (waiting_.size() == 1) parts_.on_waiting(true);
}

void OutgoingStream::on_credit(uint64_t items) {
  credit_ = std::max(credit_, items);
  send_waiting();
}

void OutgoingStream::on_acknowledged() {
  ++acknowledged_;
  send_waiting();
}

void OutgoingStream::send_waiting() {
  if (waiting_.empty()) return;
  while (!waiting_.empty() && may_send()) {
    Written written = std::move(waiting_.front());
    waiting_.pop_front();
    send(std::move(written));
  }
  if (waiting_.empty()) parts_.on_waiting(false);
}

void OutgoingStream::close(const Error& why) {
  if (closed_) return;
  closed_ = why;
  if (waiting_.empty()) return;
  std::deque<Written> refused = std::move(waiting_);
  waiting_.clear();
  for (Written& written : refused) refuse(std::move(written), why);
  parts_.on_waiting(false);
}

void OutgoingStream::refuse(Written&& written, const Error& why) {
  parts_.strand.release_later(std::make_shared<Payload>(std::move(written.value)));
  if (!written.writer.lasts()) return;
  *written.failed = why;
  written.writer.end();
}

void OutgoingStream::send(Written&& written) {
  if (Status prepared = parts_.forks->prepare_forks(to_, call_, kItemForks + sent_, written.value);
      !prepared.ok())
    return refuse(std::move(written), prepared.error());
  Item item{.call = call_,
            .position = sent_++,
            .value = std::move(written.value),
            .error = {},
            .autograd = written.autograd};
  SendOptions options = send_options(item);
  parts_.sessions.send(to_, Message{std::move(item)}, std::move(options));
  written.writer.end();
}

// In place of a value whose tensors have changed goes why it cannot be had, with its forks.
SendOptions OutgoingStream::send_options(const Item& item) {
  SendOptions options{
      .waits_for_room = true, .carried = {}, .on_acknowledged = {}, .on_withdrawn = {}};
  if (!item.value.tensors.empty()) {
    Item changed{
        .call = item.call,
        .position = item.position,
        .value = {},
        .error = Error{.kind = ErrorKind::bad_arguments,
                       .text = "a tensor of the stream was changed in place when it had yet "
                               "to be sent, or to be sent again",
                       .worker = parts_.strand.name(),
                       .function = function_},
        .autograd = {}};
    changed.value.forks = item.value.forks;
    options.carried =
        std::make_unique<CarriedTensors>(CarriedTensors{.tensors = carried_tensors(item.value),
                                                        .instead = Message{std::move(changed)},
                                                        .on_changed = {}});
  }
  if (to_ == parts_.strand.self())
    ++acknowledged_;
  else
    options.on_acknowledged = [weak = weak_from_this()] {
      if (const auto stream = weak.lock()) stream->on_acknowledged();
    };
  if (!item.value.forks.empty())
    options.on_withdrawn = [forks = parts_.forks, to = to_, sent = item.value.forks] {
      forks->undo_forks(to, sent);
    };
  return options;
}

}  // namespace rehearsal
