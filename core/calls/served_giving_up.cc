// The callee's side of calls whose caller gives up, or is lost.
#include <algorithm>

#include "core/calls/served_calls.h"
#include "core/session/session.h"

namespace rehearsal {

// Both lanes are in order, but not with each other: a cancellation may overtake its call.
void ServedCalls::on_cancel(WorkerId from, const Cancel& cancel) {
  const auto found = served_.find(cancel.id);
  if (found != served_.end()) {
    if (found->second->caller == from) return give_up(std::shared_ptr(found->second));
    return sessions_.accuse(from, {"Cancel.id", "is a call of another worker"});
  }
  forget_old_cancels(from);
  if (sessions_.all_received(from))
    return strand_.mark("a cancellation came after its call had ended");
  strand_.mark("a cancellation came that may be before its call");
  EarlyCancels& early = early_cancels_[from];
  if (!early.calls.insert(cancel.id).second) return;
  early.until.emplace_back(sessions_.highest_received(from), cancel.id);
  early_cancels_peak_ = std::max<uint64_t>(early_cancels_peak_, early.until.size());
  if (early.until.size() > session_options_.limits.early_cancels)
    sessions_.accuse(from, {"Cancel.id", "is one of more calls than can be on their way"});
}

// A call that has not come by now has ended before it was cancelled: it was sent first.
void ServedCalls::forget_old_cancels(WorkerId from) {
  const auto found = early_cancels_.find(from);
  if (found == early_cancels_.end()) return;
  EarlyCancels& early = found->second;
  const uint64_t missing = sessions_.first_missing(from);
  for (; !early.until.empty() && early.until.front().first < missing; early.until.pop_front())
    early.calls.erase(early.until.front().second);
  if (early.until.empty()) early_cancels_.erase(found);
}

bool ServedCalls::was_cancelled_early(WorkerId from, const CallId& call) {
  const auto found = early_cancels_.find(from);
  const bool cancelled = found != early_cancels_.end() && found->second.calls.erase(call) > 0;
  forget_old_cancels(from);
  return cancelled;
}

uint64_t ServedCalls::early_cancel_count() const {
  uint64_t count = 0;
  for (const auto& [from, calls] : early_cancels_) count += calls.calls.size();
  return count;
}

// Its calls are given up with it, as its deadline is theirs; but not those of a creation: others
// than its creator may wait for its value.
void ServedCalls::give_up(const std::shared_ptr<ServedCall>& served) {
  if (std::exchange(served->cancelled, true)) return;
  if (served->stream)
    served->stream->close({.kind = ErrorKind::cancelled,
                           .text = "the caller of the stream has given up, or is lost",
                           .worker = session_options_.names[served->caller.value],
                           .function = std::string(served->label)});
  const bool is_nested = served->execution && !served->call.created;
  if (is_nested && !session_options_.mutants.on(Mutant::cancel_not_nested))
    nested_.cancel_calls_of(served->execution->path());
  if (served->execution) {
    served->execution->given_up = true;
    for (Task& task : std::exchange(served->execution->when_given_up, {})) task();
    if (!served->call.created) strand_.give_up(*served->execution);
  }
  if (served->call.created) return;
  if (Task given_up = std::exchange(served->on_given_up, nullptr)) given_up();
}

// The value may never come: the call does not stay for it. But what completes it may use the object
// of a method: that lives for as long as somebody may.
void ServedCalls::stop_awaiting(const std::shared_ptr<Run>& run) {
  run->given_up = true;
  if (!served_.contains(run->served->call.id))  // The node ends: nobody is answered any more.
    return objects_left_.push_back(std::move(run->target.object));
  given_up_[run->served->call.id] = run;
  answer_error(run->served, {.kind = ErrorKind::cancelled,
                             .text = "the caller gave up before the value was there",
                             .worker = strand_.name(),
                             .function = std::string(run->served->label)});
  if (run->done) run->done();
}

void ServedCalls::on_peer_fenced(WorkerId peer) {
  early_cancels_.erase(peer);
  std::vector<std::shared_ptr<ServedCall>> given_up;
  for (const auto& [id, served] : served_)
    if (served->caller == peer) given_up.push_back(served);
  for (const auto& served : given_up)
    if (served_.contains(served->call.id)) give_up(served);  // One's end may be another's answer.
  for (const auto& served : given_up) end_waiting(served);
  on_read(peer);
}

// It has not begun, and what it waits for may be of its caller's own making: a reference that
// nobody confirms, or its turn behind a call that waits for what this one creates.
void ServedCalls::end_waiting(const std::shared_ptr<ServedCall>& served) {
  if (served->execution) return;
  if (served->when_confirmed) strand_.post([this, served] { settle_forks(served, Unit{}); });
  if (!served->call.order) return;
  if (Task start = in_order_.take(*served->call.order, served->call.id)) start();
}

void ServedCalls::on_read(WorkerId peer) {
  while (!until_read_.empty() && !sessions_.leaves_unread(peer)) {
    const auto found = until_read_.find(peer);
    if (found == until_read_.end()) return;
    Task next = std::move(found->second.front());
    found->second.pop_front();
    if (found->second.empty()) until_read_.erase(found);
    next();  // Others may come behind it.
  }
}

}  // namespace rehearsal
