#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/autograd/autograd_context.h"
#include "core/base/checkpoints.h"
#include "core/rref/calls.h"

namespace rehearsal {

// A worker as its own program sees it: what `worker_main(Worker&)` is given. Its calls are made by
// the execution of the calling stack: the worker's main, a thread that was registered, or a
// function being served that reaches its worker through a reference of its own.
class Worker : public Calls {
 public:
  // `checkpoints` may be null; it outlives the worker.
  Worker(Calls calls, WorkerId self, Checkpoints* checkpoints)
      : Calls(std::move(calls)), self_(self), checkpoints_(checkpoints) {}

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

  // Keeps a value for this worker's later lives, in place of what `name` had: whole or not at all,
  // on disk when it returns. The value is what `torch::pickle_save` takes: tensors, numbers, texts,
  // lists and dictionaries; `torch.load` of Python reads the file. `name`: letters, digits, '-',
  // '_' and '.'. Blocks while it writes. Throws RpcError of kind storage, and of kind bad_arguments
  // if the name cannot be one.
  void save_checkpoint(const std::string& name, const c10::IValue& value) const;

  // What was saved last under `name`, in this life or an earlier one; nothing if nothing was, or if
  // the machine has lost its disk. Throws as save_checkpoint does.
  [[nodiscard]] std::optional<c10::IValue> load_checkpoint(const std::string& name) const;

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
  [[nodiscard]] Checkpoints& checkpoints(const std::string& name) const;
  void trace_checkpoint(EventKind kind, const std::string& name, uint64_t digest) const;

  const WorkerId self_;
  Checkpoints* const checkpoints_;
};

}  // namespace rehearsal
