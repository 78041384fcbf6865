// The callee's side of calls: how their answers leave.
#include "core/calls/served_calls.h"
#include "core/session/session.h"

namespace rehearsal {

bool ServedCalls::is_awaited(const ServedCall& served) const {
  return sessions_.incarnation(served.caller) == served.call.id.incarnation ||
         served.caller == strand_.self();
}

void ServedCalls::send_answer(const std::shared_ptr<ServedCall>& served, Response&& answer) {
  if (!is_awaited(*served)) {
    strand_.release_later(std::make_shared<Response>(std::move(answer)));
    return forget(served, std::nullopt);
  }
  if (served->call.credit > 0) return end_stream(served, std::nullopt);
  const CallId& id = served->call.id;
  if (Status prepared = forks_->prepare_forks(served->caller, id, kResultForks, answer.value);
      !prepared.ok())
    return answer_error(served, prepared.error());
  SendOptions options;
  if (!answer.value.tensors.empty()) {
    Response changed{.id = id,
                     .value = {},
                     .error = Error{.kind = ErrorKind::bad_arguments,
                                    .text = "a tensor of the result was changed in place when it "
                                            "had yet to be sent, or to be sent again",
                                    .worker = strand_.name(),
                                    .function = std::string(served->label)},
                     .autograd = {}};
    changed.value.forks = answer.value.forks;
    options.carried =
        std::make_unique<CarriedTensors>(CarriedTensors{.tensors = carried_tensors(answer.value),
                                                        .instead = Message{std::move(changed)},
                                                        .on_changed = {}});
  }
  if (!answer.value.forks.empty())
    options.on_withdrawn = [this, to = served->caller, forks = answer.value.forks] {
      forks_->undo_forks(to, forks);
    };
  const std::optional<ErrorKind> failed =
      answer.error ? std::optional(answer.error->kind) : std::nullopt;
  sessions_.send(served->caller, Message{std::move(answer)}, std::move(options));
  forget(served, failed);
}

void ServedCalls::answer_error(const std::shared_ptr<ServedCall>& served, Error error) {
  if (error.worker.empty()) error.worker = strand_.name();
  const ErrorKind kind = error.kind;
  if (!is_awaited(*served)) {
    return forget(served, kind);
  }
  if (served->call.credit > 0) return end_stream(served, std::move(error));
  if (error.exception != nullptr) return send_exception(served, std::move(error));
  sessions_.send(
      served->caller,
      Message{
          Response{.id = served->call.id, .value = {}, .error = std::move(error), .autograd = {}}});
  forget(served, kind);
}

// The exception travels as a value does: with its tensors, and with a new fork of each reference.
void ServedCalls::send_exception(const std::shared_ptr<ServedCall>& served, Error error) {
  const auto exception = std::static_pointer_cast<const EncodedException>(error.exception);
  Response answer{.id = served->call.id,
                  .value = exception->payload(),
                  .error = std::move(error),
                  .autograd = {},
                  .exception = exception->position() + 1};
  answer.error->exception.reset();
  send_answer(served, std::move(answer));
}

}  // namespace rehearsal
