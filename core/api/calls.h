#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "core/api/drafts.h"
#include "core/api/note.h"
#include "core/api/rref.h"
#include "core/api/started_calls.h"
#include "core/api/stream.h"

namespace rehearsal {

namespace detail {

// An operator's result as R: the IValue itself, or what it holds. Nobody calls it with an R that
// named_draft refuses.
template <class R>
R from_ivalue(c10::IValue value) {
  if constexpr (std::is_same_v<R, c10::IValue>) {
    return value;
  } else if constexpr (!fits_schema_result<R>) {
    throw std::logic_error("no result of LibTorch is of this type");
  } else {
    try {
      return std::move(value).to<R>();
    } catch (const c10::Error& thrown) {
      throw RpcError({.kind = ErrorKind::bad_arguments,
                      .text = std::string("the operator's result is of another type: ") +
                              thrown.what_without_backtrace()});
    }
  }
}

}  // namespace detail

// The calls that a worker, a function being served, or an autograd context can make. PyTorch's
// three forms: `rpc_sync` parks until the value, `rpc_async` gives a Future, `remote` gives a
// reference to the result, which stays at the callee. Calling oneself takes the same path.
//
// The calls of an execution are recorded in the autograd context that it runs in, whatever object
// it calls through, a reference's own methods too: a served function runs in that of its call, the
// body given to Future::then in that of whoever gave it, a main in one while a Recording lives.
// Calls made through an AutogradContext are recorded in that one. With gradients switched off
// (NoGradGuard) nothing is recorded but those.
//
// Calls have no order unless one waits for the other: of two that are made one after the other the
// smaller or the quicker may run first. RRef::in_order gives an order to those to one value.
//
// The time-out of `remote` bounds the creation only: how long the owner may take to answer that it
// has begun, which at oneself it does at once. Then the function runs for as long as it likes, at
// oneself as elsewhere; but what it calls has no more time than the creation had left. To wait no
// longer than so for the value, give the time-out to `to_here` or `created`.
//
// A target is a worker's name, id or WorkerInfo. Errors are thrown as RpcError: by `rpc_sync` all,
// by the others only those that are found before anything is sent.
class Calls {
 public:
  Calls(std::shared_ptr<const Caller> caller, ReferencePort* references)
      : caller_(std::move(caller)), references_(references) {}

  // The same with another timeout than the worker's default; Timeout::never() for none. A call made
  // inside such a call has no more time than what is left of it.
  [[nodiscard]] Calls with_timeout(Timeout timeout) const {
    Calls calls = *this;
    calls.timeout_ = timeout;
    return calls;
  }

  // The same with room for so many values of a stream instead of 16: its function runs ahead of its
  // reader by no more. Large values are also bounded in bytes, as all that is sent is.
  [[nodiscard]] Calls with_credit(uint64_t values) const {
    Calls calls = *this;
    calls.credit_ = values;
    return calls;
  }

  // The same as part of a trace that goes through several systems: what is called carries this
  // `traceparent` of W3C Trace Context to the callee, which hands it on with what it calls in its
  // turn (see CallContext). Throws RpcError of kind bad_arguments if the text is none.
  [[nodiscard]] Calls with_traceparent(std::string_view traceparent) const {
    Calls calls = *this;
    calls.trace_ = parse_traceparent(traceparent);
    if (!calls.trace_)
      throw RpcError({.kind = ErrorKind::bad_arguments,
                      .text = "'" + std::string(traceparent) +
                              "' is no traceparent: it must look like "
                              "00-<32 hex digits>-<16 hex digits>-01",
                      .worker = caller_->strand()->name()});
    return calls;
  }

  // Writes down a value that the program has at this moment, under a name: a loss, a step, a state.
  // The note is an event of this worker, as its calls are: it is in the diagram and the page of a
  // failure, in the trace for Perfetto (numbers as a curve of that name, all else where it was
  // said), among the lines of `--trace`, in log and metrics of a worker over TCP (event=note,
  // rehearsal_note), and in its record, so that a replay which says something else is named. It is
  // part of a simulated run's fingerprint: what it says must follow from the seed, and so be no
  // address.
  //
  // `value`: a number, a length of time (in seconds), text, a tensor (its numbers, if they are
  // few), a range or an optional of such, a struct that describes its fields, or anything that has
  // a `to_string` or an operator<<. Any thread, any stack; never parks. Where nobody listens no
  // text is made: that costs a branch.
  template <class T>
  void note(std::string_view name, const T& value) const {
    if (caller_->strand()->hears_notes()) add_note(*caller_, name, note_value(value));
  }

  // ---- registered functions ----

  template <CallableFunction F, class... A>
  ResultOf<F> rpc_sync(const Target& target, F function, const A&... arguments) const {
    return wait<ResultOf<F>>(function_draft(*caller_, target, function, arguments...));
  }
  template <CallableFunction F, class... A>
  Future<ResultOf<F>> rpc_async(const Target& target, F function, const A&... arguments) const {
    return start<ResultOf<F>>(function_draft(*caller_, target, function, arguments...));
  }
  template <CallableFunction F, class... A>
  RRef<ResultOf<F>> remote(const Target& target, F function, const A&... arguments) const {
    return create<ResultOf<F>>(function_draft(*caller_, target, function, arguments...));
  }

  // A function whose answer is a stream: it takes a StreamWriter. Never parks.
  template <StreamFunction F, class... A>
  [[nodiscard]] Stream<ItemOf<F>> rpc_stream(const Target& target, F function,
                                             const A&... arguments) const {
    return open<ItemOf<F>>(function_draft(*caller_, target, function, arguments...));
  }

  // ---- a registered type: makes a T at the target ----

  template <class T, class... A>
  requires(!Callable<T>) RRef<T> remote(const Target& target, const A&... arguments)
  const { return create<T>(constructor_draft<T>(*caller_, target, arguments...)); }

  // ---- methods of a value, at its owner ----

  template <class T, CallableMethod F, class... A>
  ResultOf<F> rpc_sync(const RRef<T>& rref, F method, const A&... arguments) const {
    return wait<ResultOf<F>>(method_draft<T>(handle_of(rref), method, arguments...));
  }
  template <class T, CallableMethod F, class... A>
  Future<ResultOf<F>> rpc_async(const RRef<T>& rref, F method, const A&... arguments) const {
    return start<ResultOf<F>>(method_draft<T>(handle_of(rref), method, arguments...));
  }
  template <class T, CallableMethod F, class... A>
  RRef<ResultOf<F>> remote(const RRef<T>& rref, F method, const A&... arguments) const {
    return create<ResultOf<F>>(method_draft<T>(handle_of(rref), method, arguments...));
  }
  template <class T, StreamMethod F, class... A>
  [[nodiscard]] Stream<ItemOf<F>> rpc_stream(const RRef<T>& rref, F method,
                                             const A&... arguments) const {
    return open<ItemOf<F>>(method_draft<T>(handle_of(rref), method, arguments...));
  }
  template <class T>
  T to_here(const RRef<T>& rref) const {
    return wait<T>(fetch_draft(handle_of(rref), timeout_));
  }
  template <class T>
  [[nodiscard]] Future<T> to_here_async(const RRef<T>& rref) const {
    return start<T>(fetch_draft(handle_of(rref), timeout_));
  }

  // ---- by name: a registered function, or an ATen operator ("aten::add.Tensor", or "aten::add"
  // for the overload that fits), whose arguments may have names: kwarg("alpha", 2) ----

  template <class R, class... A>
  requires(!Callable<R>) R
      rpc_sync(const Target& target, const std::string& name, const A&... arguments)
  const {
    Draft draft = named_draft<R>(*caller_, target, name, arguments...);
    if (!draft.gives_ivalue) return wait<R>(std::move(draft));
    return detail::from_ivalue<R>(wait<c10::IValue>(std::move(draft)));
  }
  template <class R, class... A>
  requires(!Callable<R>) Future<R> rpc_async(const Target& target, const std::string& name,
                                             const A&... arguments)
  const {
    Draft draft = named_draft<R>(*caller_, target, name, arguments...);
    if (!draft.gives_ivalue) return start<R>(std::move(draft));
    return start<c10::IValue>(std::move(draft)).then([](const c10::IValue& value) {
      return detail::from_ivalue<R>(value);
    });
  }
  template <class T, class... A>
  requires(!Callable<T>)
      [[nodiscard]] Stream<T> rpc_stream(const Target& target, const std::string& name,
                                         const A&... arguments) const {
    return open<T>(named_draft<Stream<T>>(*caller_, target, name, arguments...));
  }
  template <class R, class... A>
  RRef<R> remote_by_name(const Target& target, const std::string& name,
                         const A&... arguments) const {
    return create<R>(named_draft<R>(*caller_, target, name, arguments...));
  }

  [[nodiscard]] const std::shared_ptr<const Caller>& caller() const { return caller_; }
  [[nodiscard]] ReferencePort* references() const { return references_; }

 protected:
  // Everything called from now on is recorded in this context.
  void record_in(const ContextName& context) { context_ = context; }
  [[nodiscard]] const std::optional<ContextName>& context_name() const { return context_; }
  // Everything called from now on is part of this trace.
  void trace_in(const TraceContext& trace) { trace_ = trace; }

  // Every asynchronous call is added to `started` from now on; also those of copies.
  void note_started_in(StartedCalls* started) { started_ = started; }

 private:
  template <class T>
  [[nodiscard]] static const std::shared_ptr<RRefHandle>& handle_of(const RRef<T>& rref) {
    if (!rref.valid())
      throw RpcError({.kind = ErrorKind::bad_arguments, .text = "the reference is empty"});
    return rref.shared_handle();
  }
  Draft&& with_options(Draft& draft) const {
    draft.timeout = timeout_;
    if (context_) draft.call.context = context_;
    draft.call.trace = trace_;
    return std::move(draft);
  }
  template <class R>
  R wait(Draft&& draft) const {
    return caller_->wait_typed<R>(with_options(draft)).or_throw();
  }
  template <class R>
  Future<R> start(Draft&& draft) const {
    Future<R> future = caller_->start_typed<R>(with_options(draft));
    if (started_ != nullptr) started_->add(future);
    return future;
  }
  template <class T>
  Stream<T> open(Draft&& draft) const {
    return Stream<T>(std::make_unique<StreamReader>(caller_, with_options(draft), credit_));
  }
  template <class R>
  RRef<R> create(Draft&& draft) const {
    return RRef<R>(references_->create(with_options(draft)));
  }

  std::shared_ptr<const Caller> caller_;
  ReferencePort* references_;
  Timeout timeout_;
  uint64_t credit_ = kStreamCredit;
  std::optional<ContextName> context_;
  StartedCalls* started_ = nullptr;  // null: nobody waits for all; else it outlives this object
  std::optional<TraceContext> trace_;
};

}  // namespace rehearsal
