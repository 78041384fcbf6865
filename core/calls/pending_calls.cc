#include "core/calls/pending_calls.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/session/session.h"

namespace rehearsal {
namespace {

std::string milliseconds(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count()) +
         " ms";
}

constexpr std::string_view kCancelled = "its caller has cancelled it";
constexpr std::string_view kMakerGivenUp = "it was made for a call that was given up meanwhile";

bool started_earlier(const std::pair<uint64_t, CallId>& one,
                     const std::pair<uint64_t, CallId>& other) {
  return one.first < other.first;
}

constexpr char kChanged[] =
    "a tensor argument was changed in place when the call had yet to be sent, or to be sent again";

// The call sent in a call's place if one of its tensors was changed before it left: it is refused,
// and gives the callee the forks all the same.
Call withdrawal_of(const Call& call) {
  Call refused{.id = call.id, .kind = CallKind::operator_};
  refused.arguments.forks = call.arguments.forks;
  refused.failure = kChanged;
  return refused;
}

}  // namespace

void PendingCalls::start(Draft&& draft, WhenAnswered done) {
  const CallId id = draft.call.id;
  const WorkerId to = draft.to;
  // A reference keeps the first error that it had, also when its owner is lost later.
  if (draft.target) {
    Result<RRefId> target = forks_->resolve(*draft.target);
    if (!target.ok()) return fail_at_once(draft, target.error(), done);
    draft.call.target = target.value();
  }
  MaybeError impossible = sessions_.unavailable(to);
  if (refused_) impossible = refused_;
  if (!impossible && draft.call.context) impossible = records_->why_ended(*draft.call.context);
  if (impossible) {
    impossible->function = draft.function;
    return fail_at_once(draft, std::move(*impossible), done);
  }
  if (is_given_up(id.path) && !outlasts_maker(draft.shielded))
    return refuse_cancelled(draft, std::move(done));
  if (Status prepared = forks_->prepare_forks(to, id, kArgumentForks, draft.call.arguments);
      !prepared.ok())
    return fail_at_once(draft, prepared.error(), done);

  if (is_owed(id)) return refuse_repeated(draft, done);
  const auto [place, fresh] = spare_.add(pending_, id);
  if (!fresh) return refuse_repeated(draft, done);
  Pending& pending = place->second;
  pending.to = to;
  pending.number = next_number_++;
  pending.function = draft.function;  // a copy: it also names the wait for the answer
  pending.in_context = draft.call.context.has_value();
  pending.outlasts_maker = outlasts_maker(draft.shielded);
  pending.deadline = {};
  pending.target = std::move(draft.target);
  pending.stream = std::move(draft.stream);
  if (options_.mutants.on(Mutant::uses_in_flight_hold_nothing))
    strand_.release_later(std::move(pending.target));
  pending.done = std::move(done);
  const Duration time_left = draft.call.time_left;
  if (options_.mutants.on(Mutant::forks_undone_at_timeout) && time_left.count() > 0)
    deadlines_.add(strand_.runtime().now() + time_left,
                   [this, id, to, forks = draft.call.arguments.forks] {
                     if (pending_.contains(id)) forks_->undo_forks(to, forks);
                   });
  if (time_left.count() > 0 && !options_.mutants.on(Mutant::calls_never_time_out))
    pending.deadline = deadlines_.add(saturated(strand_.runtime().now(), time_left),
                                      [this, id, time_left] { time_out(id, time_left); });

  SendOptions options = send_options(draft);
  sessions_.send(to, Message{std::move(draft.call)}, std::move(options));
}

SendOptions PendingCalls::send_options(const Draft& draft) {
  const CallId id = draft.call.id;
  const WorkerId to = draft.to;
  SendOptions options{
      .waits_for_room = true,
      .on_large_lane = draft.call.order && !options_.mutants.on(Mutant::order_on_two_lanes),
      .carried = {},
      .on_acknowledged = {},
      .on_withdrawn = {}};
  if (!draft.call.arguments.tensors.empty()) {
    auto changed = [this, id](const std::optional<std::string>& failure) {
      owe_answer(id);
      complete(id, Error{.kind = ErrorKind::bad_arguments,
                         .text = failure.value_or(kChanged),
                         .worker = strand_.name()});
    };
    options.carried = std::make_unique<CarriedTensors>(
        CarriedTensors{.tensors = carried_tensors(draft.call.arguments),
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
  return options;
}

bool PendingCalls::outlasts_maker(bool shielded) const {
  return shielded && !options_.mutants.on(Mutant::shield_dropped);
}

void PendingCalls::refuse_cancelled(const Draft& draft, WhenAnswered done) {
  strand_.mark("a call was made by an execution that nobody waits for any more");
  fail_at_once(draft, cancelled_error(draft.to, draft.function, kMakerGivenUp), done);
}

// Two executions have the same path: a worker has called with the id of another call.
void PendingCalls::refuse_repeated(const Draft& draft, WhenAnswered& done) {
  forks_->undo_forks(draft.to, draft.call.arguments.forks);
  fail_at_once(draft,
               {.kind = ErrorKind::protocol,
                .text = "a call of this id is not answered yet: a worker has called with the id of "
                        "another call",
                .worker = strand_.name(),
                .function = draft.function},
               done);
}

void PendingCalls::fail_at_once(const Draft& draft, Error error, WhenAnswered& done) {
  Result<Answer> answer = std::move(error);
  trace_completed(draft.call.id, draft.to, answer);
  done(std::move(answer));
}

void PendingCalls::trace_completed(const CallId& id, WorkerId to, const Result<Answer>& answer) {
  strand_.trace().on_event(
      {.kind = EventKind::call_completed,
       .worker = strand_.self(),
       .peer = to,
       .id = id,
       .number = answer.ok() ? 0 : 1 + static_cast<uint64_t>(answer.error().kind)});
}

void PendingCalls::complete(const CallId& id, Result<Answer>&& answer) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;
  Pending pending = std::move(found->second);
  spare_.erase(pending_, found);
  if (!options_.mutants.on(Mutant::answered_call_keeps_its_deadline))
    deadlines_.remove(pending.deadline);
  if (!answer.ok()) {
    Error& error = answer.error();
    if (error.function.empty()) error.function = pending.function;
    if (error.worker.empty()) error.worker = name(pending.to);
  }
  trace_completed(id, pending.to, answer);
  if (answer.ok()) {
    answer.value().function = std::move(pending.function);
    answer.value().in_context = pending.in_context;
  }
  pending.done(std::move(answer));
  strand_.release_later(std::move(pending.target));
  strand_.progressed();
}

void PendingCalls::time_out(const CallId& id, Duration after) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;
  give_up(id, Error{.kind = ErrorKind::timeout,
                    .text = (found->second.stream ? "the stream has not ended within "
                                                  : "no answer within ") +
                            milliseconds(after),
                    .worker = name(found->second.to)});
}

void PendingCalls::give_up(const CallId& id, Error why) {
  tell_given_up(id);
  complete(id, std::move(why));
}

void PendingCalls::tell_given_up(const CallId& id) {
  const Pending& pending = pending_.at(id);
  if (pending.stream && options_.mutants.on(Mutant::stream_cancel_lost)) return;
  if (sessions_.withdraw(pending.to, id)) return;
  owe_answer(id);
  sessions_.send(pending.to, Message{Cancel{id}});
}

void PendingCalls::owe_answer(const CallId& id) {
  const auto found = pending_.find(id);
  if (found == pending_.end() || found->second.answered) return;
  const WorkerId to = found->second.to;
  if (to == options_.self || sessions_.lost(to) || !owed_.emplace(id, to).second) return;
  if (owed_by_.add(to, options_.limits.owed_answers)) return;
  strand_.post([this, to, life = sessions_.incarnation(to)] {
    if (sessions_.incarnation(to) == life)
      sessions_.accuse(to, {"Response", "is owed to more calls than one worker serves"});
  });
}

void PendingCalls::forget_owed(const CallId& id, WorkerId from) {
  const auto found = owed_.find(id);
  if (found == owed_.end() || found->second != from) return;
  owed_.erase(found);
  owed_by_.remove(from);
}

std::optional<uint64_t> PendingCalls::number_of(const CallId& id) const {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return std::nullopt;
  return found->second.number;
}

Error PendingCalls::cancelled_error(WorkerId to, const std::string& function,
                                    std::string_view why) const {
  return {.kind = ErrorKind::cancelled,
          .text = std::string(why),
          .worker = name(to),
          .function = function};
}

Error PendingCalls::cancel(const CallId& id) {
  const auto found = pending_.find(id);
  if (found == pending_.end())
    return {
        .kind = ErrorKind::cancelled, .text = std::string(kCancelled), .worker = strand_.name()};
  Error why = cancelled_error(found->second.to, found->second.function, kCancelled);
  give_up(id, why);
  return why;
}

void PendingCalls::give_up_uses(const std::function<bool(const RRefHandle&)>& is_used,
                                const Error& why) {
  std::vector<std::pair<uint64_t, CallId>> calls;
  for (const auto& [id, pending] : pending_)
    if (pending.target && is_used(*pending.target)) calls.emplace_back(pending.number, CallId{id});
  std::sort(calls.begin(), calls.end(), started_earlier);
  for (const auto& [number, id] : calls)
    if (pending_.contains(id)) give_up(id, why);
}

void PendingCalls::cancel_calls_of(const Hash128& maker) {
  cancelled_makers_.insert(maker);
  std::vector<std::pair<uint64_t, CallId>> calls;
  for (const auto& [id, pending] : pending_)
    if (id.path == maker && !pending.outlasts_maker) calls.emplace_back(pending.number, CallId{id});
  std::sort(calls.begin(), calls.end(), started_earlier);
  for (const auto& [number, id] : calls) {
    const auto found = pending_.find(id);
    if (found == pending_.end()) continue;
    give_up(id, cancelled_error(found->second.to, found->second.function, kMakerGivenUp));
  }
}

Error PendingCalls::error_of(WorkerId from, Error error, uint32_t exception, Payload& value) const {
  if (exception == 0) return error;
  if (records_ != nullptr && bring_gradients(value.tensors))
    records_->mark_unrecorded({"the exception of", error.function, from}, Unrecorded::exception,
                              value);
  error.exception = exceptions_->received(exception - 1, std::move(value));
  if (error.exception == nullptr)
    strand_.mark("an exception came of a type that is not registered");
  return error;
}

void PendingCalls::on_response(WorkerId from, Response&& response) {
  const CallId id = response.id;
  const auto found = pending_.find(id);
  const bool awaited = found != pending_.end();
  if (awaited) {
    Pending& pending = found->second;
    if (const std::string_view why = why_not_answered_by(from, pending, false); !why.empty())
      return sessions_.accuse(from, {"Response.id", why});
    if (response.autograd && !pending.in_context)
      return sessions_.accuse(from, {"Response.autograd", "is of a call outside any context"});
    pending.answered = true;
  } else {
    strand_.mark("a response came after its call was given up");
    forget_owed(id, from);
  }
  if (!awaited && options_.mutants.on(Mutant::unwanted_response_unread)) return;
  if (awaited && response.value.forks.empty()) {
    if (response.error)
      return complete(
          id, error_of(from, std::move(*response.error), response.exception, response.value));
    return complete(id, Answer{from, std::move(response.value), response.autograd});
  }
  auto answer =
      std::make_shared<Answer>(Answer{from, std::move(response.value), response.autograd});
  // The forks of an unwanted response are adopted all the same, and released with its payload.
  forks_->adopt_forks(from, answer->value,
                      [this, id, number = number_of(id), answer, error = std::move(response.error),
                       exception = response.exception](Status confirmed) {
                        if (!is_pending(id, number)) return strand_.release_later(answer);
                        if (confirmed.ok() && !error) return complete(id, std::move(*answer));
                        // A reference in an exception that was refused says so when it is used.
                        complete(id, error
                                         ? error_of(answer->from, *error, exception, answer->value)
                                         : confirmed.error());
                        strand_.release_later(answer);
                      });
}

void PendingCalls::fail_in_order(std::vector<std::pair<uint64_t, CallId>> calls, const Error& why) {
  std::sort(calls.begin(), calls.end(), started_earlier);
  for (const auto& [number, id] : calls) complete(id, why);
}

void PendingCalls::on_peer_fenced(WorkerId peer, const Error& why) {
  std::vector<std::pair<uint64_t, CallId>> calls;
  for (const auto& [id, pending] : pending_)
    if (pending.to == peer) calls.emplace_back(pending.number, CallId{id});
  std::erase_if(owed_, [peer](const auto& entry) { return entry.second == peer; });
  owed_by_.forget(peer);
  fail_in_order(std::move(calls), why);
}

void PendingCalls::fail_all(const Error& why) {
  std::vector<std::pair<uint64_t, CallId>> calls;
  for (const auto& [id, pending] : pending_) calls.emplace_back(pending.number, CallId{id});
  fail_in_order(std::move(calls), why);
  cancelled_makers_.clear();
  owed_.clear();
}

void PendingCalls::forget_all() {
  pending_.clear();
  cancelled_makers_.clear();
  owed_.clear();
}

uint64_t PendingCalls::count_to(WorkerId worker) const {
  uint64_t count = 0;
  for (const auto& [id, pending] : pending_) count += pending.to == worker ? 1 : 0;
  return count;
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
