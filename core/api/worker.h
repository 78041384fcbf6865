#pragma once

#include <ATen/core/ivalue.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/api/autograd_context.h"
#include "core/api/calls.h"
#include "core/api/gather.h"
#include "core/api/worker_port.h"

namespace rehearsal {

class Checkpoints;

// A worker as its own program sees it: what `worker_main(Worker&)` is given. Its calls are made by
// the execution of the calling stack: the worker's main, a thread that was registered, or a
// function being served that reaches its worker through a reference of its own.
class Worker : public Calls {
 public:
  // `checkpoints` may be null; it and the node outlive the worker.
  Worker(Calls calls, WorkerId self, Checkpoints* checkpoints, WorkerPort& node)
      : Calls(std::move(calls)), self_(self), checkpoints_(checkpoints), node_(node) {}

  [[nodiscard]] const std::string& name() const { return caller()->names()[self_.value]; }
  [[nodiscard]] WorkerId id() const { return self_; }
  [[nodiscard]] WorkerInfo info() const { return {name(), self_}; }

  // All workers of the program, in rank order, whether they are there or not. Throws RpcError if
  // there is none of that name.
  [[nodiscard]] std::vector<WorkerInfo> workers() const;
  [[nodiscard]] WorkerInfo worker_info(const std::string& name) const;

  // Those of them that are there now, as far as this worker knows, itself too: in a dynamic group
  // the members, else all that are not lost. Parks for a moment.
  [[nodiscard]] std::vector<WorkerInfo> members() const;

  // Parks until the named worker is there; not at all if it is. Throws RpcError: timeout.
  void wait_for_worker(const std::string& name, Timeout timeout = {}) const;

  // How long calls may take that name no other time; zero: for ever.
  [[nodiscard]] Duration rpc_timeout() const { return caller()->rpc_timeout(); }

  // The contents of this worker's tables now. Parks for a moment.
  [[nodiscard]] DebugInfo debug_info() const;

  // The present instant on this worker's own time line, which is virtual in the simulator: for
  // measuring how long something took. Instants of different workers are not comparable.
  [[nodiscard]] Instant now() const { return caller()->strand()->runtime().now(); }

  // A reference to a value that stays here.
  template <class T>
  [[nodiscard]] RRef<T> rref(T value) const {
    return RRef<T>(references()->own(HeldValue::of<T>(std::move(value))));
  }

  // A new autograd context: what is called through it is recorded.
  [[nodiscard]] AutogradContext autograd_context() const { return AutogradContext(*this); }

  // Keeps a value for this worker's later lives, in place of what `name` had: whole or not at all,
  // on disk when it returns. The value is what `torch::pickle_save` takes: tensors, numbers, texts,
  // lists and dictionaries; `torch.load` of Python reads the file. `name`: letters, digits, '-',
  // '_' and '.'. Blocks while it writes. Throws RpcError of kind storage, and of kind bad_arguments
  // if the name cannot be one.
  void save_checkpoint(const std::string& name, const c10::IValue& value) const;

  // The value saved last under `name`, in this life or an earlier one; nothing if none was, or if
  // the machine has lost its disk. Throws as save_checkpoint does.
  [[nodiscard]] std::optional<c10::IValue> load_checkpoint(const std::string& name) const;

  // Parks until so much time has passed on this worker's own time line. Throws RpcError when the
  // node ends.
  void sleep(Duration time) const { caller()->sleep(time); }

  // A future that is complete once so much time has passed. It holds nothing up: what waits for it
  // when the node ends gets why it ended, and its continuations do not run then.
  [[nodiscard]] Future<Unit> after(Duration time) const { return caller()->after(time); }

  // The values that the named workers give to the same gathering, by name; of all workers if none
  // are named, which they must be in a dynamic group. Each of them calls this, with the same names
  // in any order, as often as the others. Parks until the last has come, or the first one's time is
  // up. Small values without references: they all pass through the first worker in rank order.
  // Throws RpcError: peer_lost if one of them is lost or has come back in a new life, timeout,
  // which at the first worker names who is missing.
  template <class T>
  [[nodiscard]] std::map<std::string, T> all_gather(const T& value,
                                                    const std::vector<std::string>& workers = {},
                                                    Timeout timeout = {}) const {
    Gathered gathered = gather(*caller(), gathering(workers), share_of(value), timeout);
    std::map<std::string, T> values;
    for (size_t i = 0; i < gathered.names.size(); ++i)
      values.emplace(gathered.names[i], value_of_share<T>(std::move(gathered.shares[i])));
    return values;
  }

  // Parks until all named workers, all if none are named, have come here; see all_gather.
  void barrier(const std::vector<std::string>& workers = {}, Timeout timeout = {}) const {
    static_cast<void>(gather(*caller(), gathering(workers), {}, timeout));
  }

  // From when the main returns, the worker does not wait for the others: it ends at once, as
  // PyTorch's shutdown(graceful=False). They lose it: what they still ask of it fails with
  // peer_lost. Called by the main.
  void leave_at_once() const { node_.leave_at_once(); }

  // A promise that this worker's code completes.
  template <class T>
  [[nodiscard]] Promise<T> promise() const {
    return Promise<T>(caller()->strand());
  }

  // A future of all values; see when_all. May be given none.
  template <class T>
  [[nodiscard]] Future<std::vector<T>> when_all(std::vector<Future<T>> futures) const {
    return rehearsal::when_all(caller()->strand(), std::move(futures));
  }

  // The outcomes of all futures, values and errors; see collect_all. May be given none.
  template <class T>
  [[nodiscard]] Future<std::vector<Result<T>>> collect_all(std::vector<Future<T>> futures) const {
    return rehearsal::collect_all(caller()->strand(), std::move(futures));
  }

 private:
  // Those who gather. Throws RpcError (bad_arguments) if a dynamic group's are not named.
  [[nodiscard]] const std::vector<std::string>& gathering(
      const std::vector<std::string>& workers) const;
  [[nodiscard]] Checkpoints& checkpoints(const std::string& name) const;
  void trace_checkpoint(EventKind kind, const std::string& name, uint64_t digest) const;

  const WorkerId self_;
  Checkpoints* const checkpoints_;
  WorkerPort& node_;
};

}  // namespace rehearsal
