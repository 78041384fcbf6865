#pragma once

#include <memory>

#include "core/api/rref.h"

namespace rehearsal {

// Calls of one worker to one value that run there in the order in which they were made, whatever
// their size: each begins when the one before has ended, its value and all. Calls that are made
// otherwise have no order unless one waits for the other: a small one overtakes a large one.
//
//   const auto policy_in_order = policy.in_order();
//   policy_in_order.rpc_async(&Policy::set, weights);             // 16 MB
//   const auto action = policy_in_order.rpc_async(&Policy::act);  // by the new weights
//
// Nothing is waited for between two calls: they travel together, on the lane of large values, where
// a small one may have to wait for a large one of somebody else. One that fails, is given up or
// never leaves holds nothing up: the next one runs when it has ended. Two handles know nothing of
// each other; copies of one are one. It keeps the reference. An execution calls in its program's
// order; of executions that share a handle, the one whose call is made first.
template <class T>
class InOrder {
 public:
  explicit InOrder(const RRef<T>& rref)
      : rref_(rref), order_(caller().strand()->running().next_id()) {}

  // The same with another time for each call, from when it is made.
  [[nodiscard]] InOrder with_timeout(Timeout timeout) const {
    InOrder limited = *this;
    limited.timeout_ = timeout;
    return limited;
  }

  // As those of RRef.
  template <CallableMethod F, class... A>
  ResultOf<F> rpc_sync(F method, const A&... arguments) const {
    return caller().template wait_typed<ResultOf<F>>(draft(method, arguments...)).or_throw();
  }
  template <CallableMethod F, class... A>
  Future<ResultOf<F>> rpc_async(F method, const A&... arguments) const {
    return caller().template start_typed<ResultOf<F>>(draft(method, arguments...));
  }
  template <CallableMethod F, class... A>
  RRef<ResultOf<F>> remote(F method, const A&... arguments) const {
    return RRef<ResultOf<F>>(handle()->references().create(draft(method, arguments...)));
  }

 private:
  [[nodiscard]] const std::shared_ptr<RRefHandle>& handle() const { return rref_.shared_handle(); }
  [[nodiscard]] const Caller& caller() const { return *handle()->caller(); }
  template <class F, class... A>
  [[nodiscard]] Draft draft(F method, const A&... arguments) const {
    Draft draft = method_draft<T>(handle(), method, arguments...);
    draft.timeout = timeout_;
    draft.call.order = order_;
    return draft;
  }

  RRef<T> rref_;
  CausalId order_;
  Timeout timeout_;
};

template <class T>
InOrder<T> RRef<T>::in_order() const {
  static_cast<void>(handle());  // Throws if there is none.
  return InOrder<T>(*this).with_timeout(timeout_);
}

}  // namespace rehearsal
