#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/execution.h"
#include "core/base/result.h"
#include "core/base/unique_function.h"
#include "core/functions/function.h"
#include "core/session/session_options.h"
#include "core/wire/message.h"

// Hooks by which the layers above change calls. rpc knows neither remote references nor autograd.
namespace rehearsal {

struct SendOptions;

// Remote references in payloads.
class ForkHook {
 public:
  virtual ~ForkHook() = default;

  // Makes a fork of each handle in the payload, for `to`, and pins its parent. The payload is the
  // arguments of `call` or its result, as `which` says (kArgumentForks, kResultForks): the forks
  // are named after it. The error: a handle that cannot be used; then nothing is made. On the
  // strand.
  [[nodiscard]] virtual Status prepare_forks(WorkerId to, const CausalId& call, uint64_t which,
                                             Payload& payload) = 0;

  // The id behind a handle, or why it cannot be used. On the strand.
  [[nodiscard]] virtual Result<RRefId> resolve(const RRefHandle& handle) = 0;

  // The frame that carried these forks was never handed to the transport. On the strand.
  virtual void undo_forks(WorkerId to, const std::vector<Fork>& forks) = 0;

  // Forks arrived from `from`: makes a handle of each in the payload, and calls `ready` when all
  // are confirmed, or one is refused. On the strand.
  virtual void adopt_forks(WorkerId from, Payload& payload, UniqueFunction<void(Status)> ready) = 0;
};

// Names a message that was received, for people: "the result of" 'forward', from its sender.
struct MessageText {
  std::string_view what;
  std::string_view function;
  WorkerId from;
};

// Why tensors that require gradients were sent without being recorded.
enum class Unrecorded : uint8_t {
  outside,        // the call is recorded in no context
  gradients_off,  // it is, but the sender had gradients switched off
  exception,      // they are part of an exception
};
[[nodiscard]] inline Unrecorded why_unrecorded(bool in_context) {
  return in_context ? Unrecorded::gradients_off : Unrecorded::outside;
}

// Whether one of these tensors requires gradients.
[[nodiscard]] bool bring_gradients(const std::vector<at::Tensor>& tensors);

// Autograd messages. On the execution that sends or receives, off the strand, unless said
// otherwise.
class RecordHook {
 public:
  virtual ~RecordHook() = default;

  // The context that a call of this execution, the running one, is recorded in; none: gradients are
  // switched off. It has a context.
  [[nodiscard]] virtual std::optional<ContextName> context_of(const Execution& running) const = 0;

  // The error of a call that is recorded in this context, if it is known here that it has ended. On
  // the strand.
  [[nodiscard]] virtual MaybeError why_ended(const ContextName& context) const = 0;

  // The worker that has caused a message: whoever sends it, or the one that it answers.
  enum class CausedBy : uint8_t { sender, receiver };

  // Makes a send function of the payload's tensors that need gradients; none: no metadata. `what`
  // says for people what the payload is: "the arguments of 'forward'".
  [[nodiscard]] virtual std::optional<AutogradMetadata> record_send(const ContextName& context,
                                                                    WorkerId to, CausedBy by,
                                                                    Payload& payload,
                                                                    const std::string& what) = 0;

  // Makes the payload's tensors the outputs of a receive function.
  virtual void record_receive(const AutogradMetadata& metadata, const MessageText& text,
                              Payload& payload) = 0;

  // The payload's tensors that require gradients are recorded nowhere: a pass that reaches one of
  // them fails, and says how it came, and why. Also on the strand.
  virtual void mark_unrecorded(const MessageText& text, Unrecorded why, Payload& payload) = 0;

  // A call recorded in this context arrived. The error: it has ended. On the strand.
  [[nodiscard]] virtual Status meet_context(const ContextName& context, WorkerId from) = 0;

  // A call recorded in this context is sent; later, once, that the peer has it or never will. On
  // the strand. A peer that is fenced gets no second report.
  virtual void call_sent(const AutogradContextId& context, WorkerId to) = 0;
  virtual void call_delivered(const AutogradContextId& context, WorkerId to) = 0;

  // Reports the call to both when it is sent with these options.
  void follow_call(const AutogradContextId& context, WorkerId to, SendOptions& options);
};

// How a served call's run ends: with its value, or an error. On the strand, once.
using Finisher = UniqueFunction<void(Result<HeldValue>)>;

// Calls with a target, or whose result becomes a reference's value. On the strand.
class ReferenceHook {
 public:
  virtual ~ReferenceHook() = default;

  // Takes over a call that has arrived, its forks adopted (`gate` is asked to run when they are
  // confirmed). `refused` is an error that decides the call already.
  virtual void serve(WorkerId from, Call call, MaybeError refused) = 0;
};

}  // namespace rehearsal
