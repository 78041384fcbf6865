#include "core/rpc/caller.h"

#include <algorithm>

namespace rehearsal {

WorkerId Caller::find(const Target& target) const {
  if (target.id()) {
    if (target.id()->value < names_.size()) return *target.id();
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "there is no worker with id " + std::to_string(target.id()->value),
                    .worker = mailbox_->name()});
  }
  const auto found = std::find(names_.begin(), names_.end(), target.name());
  if (found != names_.end()) return WorkerId{static_cast<uint32_t>(found - names_.begin())};
  std::string known;
  for (const std::string& name : names_) known += " " + name;
  throw RpcError({.kind = ErrorKind::bad_arguments,
                  .text = "there is no worker named '" + target.name() + "'; there are:" + known,
                  .worker = mailbox_->name()});
}

Draft Caller::draft(const Target& target) const {
  Execution& running = mailbox_->running();
  Draft draft;
  draft.to = find(target);
  draft.call.id = CallId{running.next_id()};
  draft.call.depth = running.depth;
  draft.deadline = running.deadline;
  return draft;
}

void Caller::record(Draft& draft) const {
  if (!draft.call.context) return;
  draft.call.autograd = records_->record_send(*draft.call.context, draft.to, draft.call.arguments,
                                              "the arguments of '" + draft.function + "'");
}

Duration Caller::time_left(const Draft& draft) const {
  Duration left = draft.timeout.or_default(rpc_timeout_);
  if (!draft.deadline) return left;
  const Duration inherited = std::max(*draft.deadline - mailbox_->runtime().now(), Duration(1));
  return left.count() == 0 ? inherited : std::min(left, inherited);
}

void Caller::start_on_strand(Draft&& draft, UniqueFunction<void(Result<Answer>)> done) const {
  draft.call.time_left = time_left(draft);
  mailbox_->trace().on_event({.kind = EventKind::api_call,
                              .worker = mailbox_->self(),
                              .peer = draft.to,
                              .id = draft.call.id,
                              .number = static_cast<uint64_t>(draft.call.time_left.count()),
                              .text = draft.function});
  pending_->start({.to = draft.to,
                   .call = std::move(draft.call),
                   .function = std::move(draft.function),
                   .target = std::move(draft.target),
                   .done = std::move(done)});
}

Result<Answer> Caller::wait_for(Draft&& draft) const {
  record(draft);
  std::optional<Result<Answer>> slot;
  const std::string function = draft.function;
  const Status status = mailbox_->wait(function, draft.call.id, [&](WaitHandle handle) {
    start_on_strand(std::move(draft), [&slot, handle](Result<Answer> answer) {
      if (!handle.lasts()) return;
      slot.emplace(std::move(answer));
      handle.end();
    });
  });
  if (!status.ok()) return status.error();
  return std::move(*slot);
}

void Caller::start(Draft&& draft, UniqueFunction<void(Result<Answer>)> done) const {
  record(draft);
  mailbox_->post([this, draft = std::move(draft), done = std::move(done)]() mutable {
    start_on_strand(std::move(draft), std::move(done));
  });
}

void Caller::record_answer(Answer& answer) const {
  if (answer.autograd) records_->record_receive(*answer.autograd, answer.from, answer.value);
}

}  // namespace rehearsal
