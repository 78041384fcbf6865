// The caller's side of streams: calls that are answered by many values.
#include "core/calls/pending_calls.h"
#include "core/session/session.h"

namespace rehearsal {

IncomingStream* PendingCalls::stream_of(const CallId& id, WorkerId from) {
  const auto found = pending_.find(id);
  if (found == pending_.end() || found->second.to != from) return nullptr;
  return found->second.stream.get();
}

std::string_view PendingCalls::why_not_answered_by(WorkerId from, const Pending& pending,
                                                   bool by_stream) {
  if (pending.to != from) return "is a call to another worker";
  if ((pending.stream != nullptr) == by_stream) return {};
  return by_stream ? "is no stream" : "is a stream, which one value does not answer";
}

void PendingCalls::on_item(WorkerId from, Item&& item) {
  const CallId id = item.call;
  if (const auto found = pending_.find(id); found != pending_.end())
    if (const std::string_view why = why_not_answered_by(from, found->second, true); !why.empty())
      return sessions_.accuse(from, {"Item.call", why});
  IncomingStream* const stream = stream_of(id, from);
  if (stream != nullptr && !stream->note(item.position))
    return sessions_.accuse(from, {"Item.position", "is of a value that it may not send"});
  if (stream == nullptr) strand_.mark("a value came after its stream was given up");
  if (stream == nullptr && options_.mutants.on(Mutant::unwanted_response_unread)) return;
  auto answer = std::make_shared<Answer>(Answer{from, std::move(item.value), item.autograd});
  // The forks of an unwanted value are adopted all the same, and released with its payload.
  forks_->adopt_forks(from, answer->value,
                      [this, id, number = number_of(id), position = item.position, answer,
                       error = std::move(item.error)](Status confirmed) {
                        if (!is_pending(id, number)) return strand_.release_later(answer);
                        if (confirmed.ok() && !error)
                          return put_value(id, position, std::move(*answer));
                        put_value(id, position, error ? *error : confirmed.error());
                        strand_.release_later(answer);
                      });
}

void PendingCalls::put_value(const CallId& id, uint64_t position, Result<Answer>&& value) {
  const Pending& pending = pending_.at(id);
  if (value.ok() && !value.value().value.tensors.empty()) {
    value.value().function = pending.function;
    value.value().in_context = pending.in_context;
  }
  pending.stream->put(position, std::move(value), options_.mutants);
  settle_stream(id);
}

void PendingCalls::on_end(WorkerId from, End&& end) {
  if (const auto found = pending_.find(end.call); found != pending_.end()) {
    if (const std::string_view why = why_not_answered_by(from, found->second, true); !why.empty())
      return sessions_.accuse(from, {"End.call", why});
    found->second.answered = true;
  } else {
    forget_owed(end.call, from);
  }
  if (end.value.forks.empty()) {
    if (end.error) end.error = error_of(from, *end.error, end.exception, end.value);
    return end_stream(from, std::move(end));
  }
  // The references in its exception are confirmed first; one that is refused says so when used.
  auto held = std::make_shared<End>(std::move(end));
  auto answer = std::make_shared<Answer>(Answer{from, std::move(held->value), {}});
  forks_->adopt_forks(
      from, answer->value, [this, from, held, answer, number = number_of(held->call)](Status) {
        if (is_pending(held->call, number)) {
          held->error = error_of(from, *held->error, held->exception, answer->value);
          end_stream(from, std::move(*held));
        }
        strand_.release_later(answer);
      });
}

void PendingCalls::end_stream(WorkerId from, End&& end) {
  IncomingStream* const stream = stream_of(end.call, from);
  if (stream == nullptr) return strand_.mark("the end came of a stream that was given up");
  if (!stream->note_end(end.items, std::move(end.error)))
    return sessions_.accuse(from, {"End.items", "are not as many as the stream had"});
  settle_stream(end.call);
}

void PendingCalls::settle_stream(const CallId& id) {
  IncomingStream& stream = *pending_.at(id).stream;
  stream.hand_on();
  std::optional<Status> outcome = stream.outcome();
  if (!outcome) return grant_credit(id);
  if (outcome->ok()) return complete(id, Answer{});
  if (!stream.end_known()) tell_given_up(id);
  complete(id, outcome->error());
}

void PendingCalls::take(const CallId& id, IncomingStream& stream, ValueTaker taker) {
  stream.take(std::move(taker));
  if (pending_.contains(id)) grant_credit(id);
}

void PendingCalls::grant_credit(const CallId& id) {
  const Pending& pending = pending_.at(id);
  if (const uint64_t credit = pending.stream->more_credit(); credit > 0)
    sessions_.send(pending.to, Message{Credit{id, credit}});
}

}  // namespace rehearsal
