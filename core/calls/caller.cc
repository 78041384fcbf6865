#include "core/api/caller.h"

#include <algorithm>

#include "core/api/worker_port.h"
#include "core/base/call_bounds.h"
#include "core/base/short_text.h"
#include "core/calls/deadlines.h"
#include "core/calls/hooks.h"
#include "core/calls/profiler_range.h"
#include "core/values/device_table.h"

namespace rehearsal {

WorkerId Caller::find(const Target& target) const {
  if (target.id()) {
    if (target.id()->value < names_.size()) return *target.id();
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "there is no worker of that rank: ranks go from 0 to " +
                            std::to_string(names_.size() - 1),
                    .worker = strand_->name()});
  }
  const auto found = std::find(names_.begin(), names_.end(), target.name());
  if (found != names_.end()) return WorkerId{static_cast<uint32_t>(found - names_.begin())};
  std::string known;
  for (const std::string& name : names_) known += " " + name;
  throw RpcError(
      {.kind = ErrorKind::bad_arguments,
       .text = "there is no worker named '" + short_name(target.name()) + "'; there are:" + known,
       .worker = strand_->name()});
}

Draft Caller::draft(const Target& target) const {
  Execution& running = strand_->running();
  Draft draft;
  draft.to = find(target);
  draft.call.id = CallId{running.next_id()};
  draft.call.stream = running.stream_of(draft.call.id);
  draft.call.depth = running.depth;
  const CallBounds bounds = call_bounds(running);
  draft.deadline = bounds.deadline;
  draft.shielded = bounds.shielded;
  if (parts_.devices != nullptr) draft.devices = parts_.devices->to(draft.to);
  draft.lend = device_way(*strand_, draft.to);
  if (running.context != nullptr && parts_.records != nullptr)
    draft.call.context = parts_.records->context_of(running);
  return draft;
}

void Caller::record(Draft& draft) const {
  // Nobody waits for the gradients of clean-up, whose context may have ended.
  if (draft.shielded) draft.call.context.reset();
  if (!draft.call.context) return;
  draft.call.autograd = parts_.records->record_send(
      *draft.call.context, draft.to, RecordHook::CausedBy::sender, draft.call.arguments,
      "the arguments of '" + draft.function + "'");
}

Duration Caller::time_left(const Draft& draft) const {
  Duration left = draft.timeout.or_default(rpc_timeout_);
  if (!draft.deadline) return left;
  const Duration inherited = std::max(*draft.deadline - strand_->runtime().now(), Duration(1));
  return left.count() == 0 ? inherited : std::min(left, inherited);
}

void Caller::start_on_strand(Draft&& draft, CallForm form, WhenAnswered done) const {
  draft.call.time_left = time_left(draft);
  strand_->trace().on_event({.kind = EventKind::api_call,
                             .worker = strand_->self(),
                             .peer = draft.to,
                             .id = draft.call.id,
                             .number = static_cast<uint64_t>(draft.call.time_left.count()),
                             .digest = static_cast<uint64_t>(form),
                             .text = draft.function});
  parts_.calls->start(std::move(draft), std::move(done));
}

Status Caller::wait_for(Draft& draft, std::optional<Result<Answer>>& answer) const {
  const ProfilerRange range([&] { return text_of(CallForm::rpc_sync, draft); });
  record(draft);
  return strand_->wait(draft.function, draft.call.id, [&](WaitHandle handle) {
    start_on_strand(std::move(draft), CallForm::rpc_sync,
                    [&answer, handle](Result<Answer>&& given) {
                      if (!handle.lasts()) return;
                      answer.emplace(std::move(given));
                      handle.end();
                    });
  });
}

void Caller::start(Draft&& draft, WhenAnswered done) const {
  const ProfilerRange range([&] { return text_of(CallForm::rpc_async, draft); });
  record(draft);
  struct Starting {
    Draft draft;
    WhenAnswered done;
  };
  auto call = std::make_unique<Starting>(std::move(draft), std::move(done));
  strand_->post([this, call = std::move(call)] {
    start_on_strand(std::move(call->draft), CallForm::rpc_async, std::move(call->done));
  });
}

Instant Caller::when_passed(Duration time) const {
  return saturated(strand_->runtime().now(), time);
}

void Caller::visit_strand(std::string_view what, const std::function<void()>& body) const {
  const Status status = strand_->wait(what, {}, [&body](WaitHandle wait) {
    body();
    wait.end();
  });
  if (!status.ok()) throw RpcError(status.error());
}

std::optional<Instant> Caller::await_worker(WorkerId worker, Timeout timeout) const {
  Draft limit;
  limit.timeout = timeout;
  limit.deadline = call_bounds(strand_->running()).deadline;
  std::optional<Instant> deadline;
  Status came = Unit{};
  UniqueFunction<void(const Error&)> stop;
  const Status waited = strand_->wait_while_awaited(
      "worker '" + names_[worker.value] + "' to come",
      [&](WaitHandle wait) {
        const Duration left = time_left(limit);
        if (left.count() > 0) deadline = when_passed(left);
        stop = parts_.node->await_member(worker, deadline, wait, came);
      },
      [&stop](const Error& nobody_waits) { stop(nobody_waits); });
  if (!waited.ok()) throw RpcError(waited.error());
  if (!came.ok()) throw RpcError(came.error());
  return deadline;
}

Future<Unit> Caller::after(Duration time) const {
  auto state = std::make_shared<FutureState<Unit>>(strand_, CausalId{});
  strand_->post([this, state, when = when_passed(time)] {
    parts_.deadlines->add_loose_pause(when, [state] { state->complete(Unit{}); });
  });
  return Future<Unit>(state);
}

DeadlineId Caller::call_at(Instant when, Task task) const {
  return parts_.deadlines->add_loose_pause(when, std::move(task));
}

void Caller::take_back(const DeadlineId& id) const { parts_.deadlines->remove(id); }

Shield Caller::shield(Duration time) const {
  if (time <= Duration::zero())
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "a shield needs a time above zero",
                    .worker = strand_->name()});
  return {strand_->running(), when_passed(time)};
}

void Caller::sleep(Duration time) const {
  const Instant when = when_passed(time);
  const Status slept = strand_->wait("time to pass", {}, [&](WaitHandle wait) {
    parts_.deadlines->add_pause(when, [wait] { wait.end(); });
  });
  if (!slept.ok()) throw RpcError(slept.error());
}

Status Caller::read_answer(Answer& answer, ReadInto read, void* place) const {
  const auto decode = [&]() -> Status {
    try {
      put_on_devices(answer.value, *strand_);
      record_answer(answer);
      ValueReader reader(answer.value);
      read(reader, place);
      reader.finish();
      return Unit{};
    } catch (const BadValue& bad) {
      return Error{.kind = ErrorKind::bad_arguments,
                   .text = "the result does not fit its type: " + short_text(bad.what()),
                   .worker = strand_->name()};
    }
  };
  Result<Status> outcome =
      run_user_code(strand_->name(), "result", decode, strand_->exception_hook());
  if (!outcome.ok()) return std::move(outcome.error());
  return std::move(outcome).value();
}

void Caller::start_future(Draft&& draft, std::shared_ptr<FutureCore> state, ReadInto read) const {
  const CallId id = draft.call.id;
  state->set_canceller([this, id] { return parts_.calls->cancel(id); });
  state->work_in(StreamSet::current(strand_->devices()));
  auto promise = std::make_shared<const PromiseCore>(std::move(state));
  start(std::move(draft), [this, id, read, promise = std::move(promise)](Result<Answer>&& answer) {
    if (!answer.ok()) return promise->fail(std::move(answer.error()));
    // User code reads the value: off the strand.
    strand_->run_continuation({.id = id, .streams = promise->state()->streams()},
                              [this, read, promise, answer = std::move(answer)]() mutable {
                                std::unique_ptr<GivenValue> value;
                                Status status = read_answer(answer.value(), read, &value);
                                promise->complete(status.ok() ? Given(std::move(value))
                                                              : Given(std::move(status.error())));
                              });
  });
}

void Caller::record_answer(Answer& answer) const {
  if (parts_.records == nullptr || !bring_gradients(answer.value.tensors)) return;
  const MessageText text{"the result of", answer.function, answer.from};
  if (answer.autograd)
    parts_.records->record_receive(*answer.autograd, text, answer.value);
  else
    parts_.records->mark_unrecorded(text, why_unrecorded(answer.in_context), answer.value);
}

}  // namespace rehearsal
