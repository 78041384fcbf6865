#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/autograd/autograd_context.h"
#include "core/rref/calls.h"

namespace rehearsal {

// A worker as its own program sees it: what `worker_main(Worker&)` is given. Its calls are made by
// the execution of the calling stack: the worker's main, a thread that was registered, or a
// function being served that reaches its worker through a reference of its own.
class Worker : public Calls {
 public:
  Worker(Calls calls, WorkerId self) : Calls(std::move(calls)), self_(self) {}

  [[nodiscard]] const std::string& name() const { return caller()->names()[self_.value]; }
  [[nodiscard]] WorkerId id() const { return self_; }
  [[nodiscard]] WorkerInfo info() const { return {name(), self_}; }

  // All workers, in rank order. Throws RpcError if there is none of that name.
  [[nodiscard]] std::vector<WorkerInfo> workers() const;
  [[nodiscard]] WorkerInfo worker_info(const std::string& name) const;

  // The present instant on this worker's own time line, which is virtual in the simulator: for
  // measuring how long something took. Instants of different workers are not comparable.
  [[nodiscard]] Instant now() const { return caller()->mailbox()->runtime().now(); }

  // A reference to a value that stays here.
  template <class T>
  [[nodiscard]] RRef<T> rref(T value) const {
    return RRef<T>(rrefs()->own(HeldValue::of<T>(std::move(value))));
  }

  // A new autograd context: what is called through it is recorded.
  [[nodiscard]] AutogradContext autograd_context() const { return AutogradContext(*this); }

  // A promise that this worker's code completes.
  template <class T>
  [[nodiscard]] Promise<T> promise() const {
    return Promise<T>(caller()->mailbox());
  }

  // A future of all values; see when_all. May be given none.
  template <class T>
  [[nodiscard]] Future<std::vector<T>> when_all(std::vector<Future<T>> futures) const {
    return rehearsal::when_all(caller()->mailbox(), std::move(futures));
  }

 private:
  const WorkerId self_;
};

}  // namespace rehearsal
