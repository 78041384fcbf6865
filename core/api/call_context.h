#pragma once

#include <memory>
#include <string>

#include "core/api/worker_access.h"

namespace rehearsal {

struct ServedCall;

// The knowledge and means of a function that is being served. A registered function that takes a
// CallContext& first is given one; it is not part of its wire signature. Calls made through it are
// part of its call's trace: with this call as the parent. Like all that the function calls, by
// references for example, they have no more time than the call itself, end with `cancelled` when
// the caller gives up, and are recorded in the autograd context that the call came in; but for what
// is called in a `shielded` scope, and by destructors while an exception leaves the function. It
// may be kept no longer than the function runs.
class CallContext : public WorkerAccess {
 public:
  CallContext(Calls calls, std::shared_ptr<const ServedCall> served);

  using WorkerAccess::worker_info;
  [[nodiscard]] WorkerInfo caller_info() const;
  [[nodiscard]] WorkerInfo worker_info() const { return info(); }

  // Whether the caller has given up: the result is not wanted any more. From then on what this
  // execution has called, and still calls, fails with `cancelled`, unless it is `shielded`; what it
  // creates does not. Parks for a moment.
  [[nodiscard]] bool cancelled() const;

  // The autograd context that the call is recorded in, if any.
  [[nodiscard]] const std::optional<ContextName>& autograd_context() const {
    return context_name();
  }

  // Where tensors of the result can be that are on this device: there, if the caller's device map
  // leads back from it, else on the CPU.
  [[nodiscard]] c10::Device result_device(const c10::Device& device) const;

  // The trace of W3C Trace Context that the call is part of, as its caller's `traceparent`; empty
  // if it is part of none.
  [[nodiscard]] std::string traceparent() const;

 private:
  const std::shared_ptr<const ServedCall> served_;
};

}  // namespace rehearsal
