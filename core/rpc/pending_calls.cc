#include "core/rpc/pending_calls.h"

#include <algorithm>

#include "core/base/check.h"

namespace rehearsal {
namespace {

std::string milliseconds(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count()) +
         " ms";
}

// What goes in a call's place if one of its tensors was changed before it was resent: a call that
// is refused, and gives the callee the forks all the same.
Call withdrawal_of(const Call& call) {
  Call refused{.id = call.id, .kind = CallKind::operator_};
  refused.arguments.forks = call.arguments.forks;
  return refused;
}

}  // namespace

void PendingCalls::start(Draft&& draft, WhenAnswered done) {
  const CallId id = draft.call.id;
  const WorkerId to = draft.to;
  // A reference keeps the first error that it had, also when its owner is lost later.
  if (draft.target) {
    Result<RRefId> target = forks_->resolve(*draft.target);
    if (!target.ok()) return done(target.error());
    draft.call.target = target.value();
  }
  if (const MaybeError& lost = sessions_.lost(to)) {
    Error error = *lost;
    error.function = draft.function;
    return done(std::move(error));
  }
  if (Status prepared = forks_->prepare_forks(to, id, kArgumentForks, draft.call.arguments);
      !prepared.ok())
    return done(prepared.error());

  const auto [place, fresh] = spare_.add(pending_, id);
  REHEARSAL_CHECK(fresh, id);
  Pending& pending = place->second;
  pending.to = to;
  pending.number = next_number_++;
  pending.function = draft.function;  // a copy: it also names the wait for the answer
  pending.deadline = {};
  pending.target = std::move(draft.target);
  if (options_.mutants.on(Mutant::uses_in_flight_hold_nothing))
    mailbox_.release_later(std::move(pending.target));
  pending.done = std::move(done);
  const Duration time_left = draft.call.time_left;
  if (options_.mutants.on(Mutant::forks_undone_at_timeout) && time_left.count() > 0)
    deadlines_.add(mailbox_.runtime().now() + time_left,
                   [this, id, to, forks = draft.call.arguments.forks] {
                     if (pending_.contains(id)) forks_->undo_forks(to, forks);
                   });
  if (time_left.count() > 0 && !options_.mutants.on(Mutant::calls_never_time_out))
    pending.deadline = deadlines_.add(mailbox_.runtime().now() + time_left,
                                      [this, id, time_left] { time_out(id, time_left); });

  SendOptions options{
      .waits_for_room = true, .carried = {}, .on_acknowledged = {}, .on_withdrawn = {}};
  if (!draft.call.arguments.tensors.empty()) {
    auto changed = [this, id] {
      complete(id, Error{.kind = ErrorKind::bad_arguments,
                         .text = "a tensor argument was changed in place before the call was "
                                 "acknowledged, and the link was lost meanwhile",
                         .worker = mailbox_.name()});
    };
    options.carried = std::make_unique<CarriedTensors>(
        CarriedTensors{.tensors = draft.call.arguments.tensors,
                       .instead = Message{withdrawal_of(draft.call)},
                       .on_changed = std::move(changed)});
  }
  if (!draft.call.arguments.forks.empty())
    options.on_withdrawn = [this, to, forks = draft.call.arguments.forks] {
      forks_->undo_forks(to, forks);
    };
  const bool needs_gradients = draft.call.autograd.has_value();
  if (draft.call.context &&
      (needs_gradients || !options_.mutants.on(Mutant::holders_need_gradients)))
    records_->follow_call(draft.call.context->id, to, options);
  sessions_.send(to, Message{std::move(draft.call)}, std::move(options));
}

void PendingCalls::complete(const CallId& id, Result<Answer>&& answer) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;
  Pending pending = std::move(found->second);
  spare_.erase(pending_, found);
  deadlines_.remove(pending.deadline);
  if (!answer.ok()) {
    Error& error = answer.error();
    if (error.function.empty()) error.function = pending.function;
    if (error.worker.empty()) error.worker = name(pending.to);
  }
  mailbox_.trace().on_event(
      {.kind = EventKind::call_completed,
       .worker = mailbox_.self(),
       .peer = pending.to,
       .id = id,
       .number = answer.ok() ? 0 : 1 + static_cast<uint64_t>(answer.error().kind)});
  pending.done(std::move(answer));
  mailbox_.release_later(std::move(pending.target));
  mailbox_.progressed();
}

void PendingCalls::time_out(const CallId& id, Duration after) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;
  const WorkerId to = found->second.to;
  if (!sessions_.withdraw(to, id)) sessions_.send(to, Message{Cancel{id}});
  complete(id, Error{.kind = ErrorKind::timeout,
                     .text = "no answer within " + milliseconds(after),
                     .worker = name(to)});
}

void PendingCalls::on_response(WorkerId from, Response&& response) {
  const CallId id = response.id;
  const bool awaited = pending_.contains(id);
  if (!awaited) mailbox_.mark("a response came after its call was given up");
  if (!awaited && options_.mutants.on(Mutant::unwanted_response_unread)) return;
  if (awaited && response.value.forks.empty()) {
    if (response.error) return complete(id, std::move(*response.error));
    return complete(id, Answer{from, std::move(response.value), response.autograd});
  }
  auto answer =
      std::make_shared<Answer>(Answer{from, std::move(response.value), response.autograd});
  // The forks of an unwanted response are adopted all the same, and released with its payload.
  forks_->adopt_forks(from, answer->value,
                      [this, id, answer, error = std::move(response.error)](Status confirmed) {
                        if (!pending_.contains(id)) return mailbox_.release_later(answer);
                        if (confirmed.ok() && !error) return complete(id, std::move(*answer));
                        complete(id, error ? *error : confirmed.error());
                        mailbox_.release_later(answer);
                      });
}

void PendingCalls::fail_in_order(std::vector<std::pair<uint64_t, CallId>> calls, const Error& why) {
  std::sort(calls.begin(), calls.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [number, id] : calls) complete(id, why);
}

void PendingCalls::on_peer_fenced(WorkerId peer, const Error& why) {
  std::vector<std::pair<uint64_t, CallId>> calls;
  for (const auto& [id, pending] : pending_)
    if (pending.to == peer) calls.emplace_back(pending.number, CallId{id});
  fail_in_order(std::move(calls), why);
}

void PendingCalls::fail_all(const Error& why) {
  std::vector<std::pair<uint64_t, CallId>> calls;
  for (const auto& [id, pending] : pending_) calls.emplace_back(pending.number, CallId{id});
  fail_in_order(std::move(calls), why);
}

std::vector<WaitViews::UnansweredCall> PendingCalls::views() const {
  std::vector<std::pair<uint64_t, WaitViews::UnansweredCall>> numbered;
  for (const auto& [id, pending] : pending_)
    numbered.push_back({pending.number, {id, pending.to, pending.function}});
  std::sort(numbered.begin(), numbered.end(),
            [](const auto& one, const auto& other) { return one.first < other.first; });
  std::vector<WaitViews::UnansweredCall> calls;
  for (auto& [number, call] : numbered) calls.push_back(std::move(call));
  return calls;
}

}  // namespace rehearsal
