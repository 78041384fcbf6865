#pragma once

#include <memory>
#include <string>

#include "core/api/calls.h"

namespace rehearsal {

struct ServedCall;

// The knowledge and means of a function that is being served. A registered function that takes a
// CallContext& first is given one; it is not part of its wire signature. Calls made through it have
// no more time than the call itself, end with `cancelled` when the caller gives up, are recorded in
// the autograd context that the call came in, and are part of its trace: with this call as the
// parent. It may be kept no longer than the function runs.
class CallContext : public Calls {
 public:
  CallContext(Calls calls, std::shared_ptr<const ServedCall> served);

  [[nodiscard]] WorkerInfo caller_info() const;
  [[nodiscard]] WorkerInfo worker_info() const;

  // Whether the caller has given up: the result is not wanted any more. From then on what this
  // execution has called, and still calls, fails with `cancelled`; what it creates does not. Parks
  // for a moment.
  [[nodiscard]] bool cancelled() const;

  // A reference to a value that stays here.
  template <class T>
  [[nodiscard]] RRef<T> rref(T value) const {
    return RRef<T>(references()->own(HeldValue::of<T>(std::move(value))));
  }

  // A promise whose future the function may return (asynchronous execution): the answer leaves
  // when it is completed, and no stack is held meanwhile.
  template <class T>
  [[nodiscard]] Promise<T> promise() const {
    return Promise<T>(caller()->strand());
  }

  // Parks until so much time has passed, also if the caller gives up meanwhile. Throws RpcError
  // when the node ends.
  void sleep(Duration time) const { caller()->sleep(time); }

  // A future that is complete once so much time has passed. A function may return what it does
  // then: no stack is held meanwhile.
  [[nodiscard]] Future<Unit> after(Duration time) const { return caller()->after(time); }

  // The autograd context that the call is recorded in, if any.
  [[nodiscard]] const std::optional<ContextName>& autograd_context() const {
    return context_name();
  }

  // The trace of W3C Trace Context that the call is part of, as its caller's `traceparent`; empty
  // if it is part of none.
  [[nodiscard]] std::string traceparent() const;

 private:
  const std::shared_ptr<const ServedCall> served_;
};

}  // namespace rehearsal
