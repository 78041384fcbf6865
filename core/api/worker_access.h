#pragma once

#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <vector>

#include "core/api/calls.h"
#include "core/api/published.h"
#include "core/api/worker_port.h"
#include "core/api/worker_state.h"
#include "core/base/future_groups.h"
#include "core/base/monitor_entry.h"
#include "core/base/symbols.h"
#include "core/base/trace.h"

namespace rehearsal {

// A worker as what runs there sees it: its main (Worker) and the functions that it serves
// (CallContext) have all of this alike. A function that runs inline cannot use what parks, if only
// for a moment: it gets RpcError (would_park).
class WorkerAccess : public Calls {
 public:
  explicit WorkerAccess(Calls calls) : Calls(std::move(calls)) {}

  // ---- workers ----

  [[nodiscard]] const std::string& name() const { return caller()->strand()->name(); }
  [[nodiscard]] WorkerId id() const { return caller()->strand()->self(); }
  [[nodiscard]] WorkerInfo info() const { return {name(), id()}; }

  // All workers of the program, in rank order, whether they are there or not. Throws RpcError if
  // there is none of that name.
  [[nodiscard]] std::vector<WorkerInfo> workers() const;
  [[nodiscard]] WorkerInfo worker_info(const std::string& name) const;

  // Those of them that are there now, as far as this worker knows, itself too: in a dynamic group
  // the members, else all that are not lost. Parks for a moment.
  [[nodiscard]] std::vector<WorkerInfo> members() const;

  // Parks until the named worker is there; not at all if it is. Throws RpcError: timeout, which
  // says why it was lost, if it was; cancelled, if nobody waits any more for the function that
  // waits here, and it is not shielded.
  void wait_for_worker(const std::string& name, Timeout timeout = {}) const;

  // How long calls of this worker may take that name no other time; zero: for ever. A new one holds
  // for all of them, whoever makes them, that are sent from then on. Both park for a moment.
  [[nodiscard]] Duration rpc_timeout() const;
  void set_default_timeout(Timeout timeout) const;

  // The contents of this worker's tables now. Parks for a moment.
  [[nodiscard]] DebugInfo debug_info() const;

  // ---- devices ----

  // How many devices this worker has that tensors can be on, beside the CPU: its GPUs, or in a
  // simulated cluster those that the cluster gives it (ClusterOptions::devices).
  [[nodiscard]] int device_count() const { return caller()->strand()->devices().count; }
  // One of them, as LibTorch names it: cuda:1 or sim:1. Throws RpcError (bad_arguments) if there is
  // none of this number.
  [[nodiscard]] c10::Device device(int number) const;

  // ---- values that are here ----

  // A reference to a value that stays here.
  template <class T>
  [[nodiscard]] RRef<T> rref(T value) const {
    HeldValue held = HeldValue::of<T>(std::move(value));
    held.streams = StreamSet::current(caller()->strand()->devices());
    return RRef<T>(references()->own(std::move(held)));
  }

  // Lets others have the reference, a new one each, by this worker's name and this one, which may
  // be any text but an empty one, up to a MiB. The value may be anybody's. The name holds it until
  // it is taken back or the worker's life ends; at a shutdown it is not reported as left. Parks for
  // a moment. Throws RpcError: bad_arguments if the name is taken or too long, or, of unpublish, if
  // nothing has it.
  template <class T>
  void publish(const std::string& name, const RRef<T>& rref) const {
    rehearsal::publish(*caller(), name, {rref.shared_handle(), type_name(typeid(T))});
  }
  void unpublish(const std::string& name) const { rehearsal::unpublish(*caller(), name); }

  // The reference that a worker, perhaps this one, has published. Parks until the worker is there
  // and has published it: a worker that has crashed may come again, and its new life publish anew.
  // Throws RpcError: timeout, which says which of the two is missing; cancelled, as wait_for_worker
  // does; peer_lost with the cause, if the worker is lost or leaves while it is asked;
  // bad_arguments if the name is that of another type; and why the reference cannot be used, if so.
  template <class T>
  [[nodiscard]] RRef<T> lookup(const Target& worker, const std::string& name,
                               Timeout timeout = {}) const {
    return RRef<T>(look_up(*caller(), worker, name, typeid(T), timeout).handle);
  }

  // This worker's state of type T, which its program gave it (Program::state). The functions that
  // run at the same time have the same T: what they change they change in `with_state`, or T guards
  // itself. It lives for as long as functions run here. Never parks. Throws RpcError if there is
  // none.
  template <class T>
  [[nodiscard]] T& state() const {
    return *static_cast<T*>(caller()->states().at(typeid(T), name()).value.get());
  }

  // Calls `body(T&)` in the state's monitor: no other body of `with_state<T>` runs meanwhile,
  // unless this one parks. In a method of a referenced value it is that value's monitor that is
  // given up while the body parks, and the state's is kept; there the body must not come here
  // again. Parks. On devices the body works in the state's streams, as in RRef::with_local.
  template <class T, class F>
  auto with_state(F body) const {
    const WorkerStates::State& state = caller()->states().at(typeid(T), name());
    const InMonitor inside(caller()->strand(), state.monitor, "the worker's state");
    return body(*static_cast<T*>(state.value.get()));
  }

  // ---- what outlives the worker ----

  // Keeps a value for this worker's later lives, in place of what `name` had: whole or not at all,
  // on disk when it returns. The value is what `torch::pickle_save` takes: tensors on the CPU,
  // numbers, texts, lists and dictionaries, at most 64 deep in each other; `torch.load` of Python
  // reads the file, with weights_only=False if it has lists or dictionaries. `name`: letters,
  // digits, '-', '_' and '.'. Blocks while it writes. Throws RpcError of kind storage, and of kind
  // bad_arguments if the name or the value cannot be one.
  void save_checkpoint(const std::string& name, const c10::IValue& value) const;

  // The value saved last under `name`, in this life or an earlier one; nothing if none was, or if
  // the machine has lost its disk. Throws as save_checkpoint does.
  [[nodiscard]] std::optional<c10::IValue> load_checkpoint(const std::string& name) const;

  // ---- time ----

  // The present instant on this worker's own time line, which is virtual in the simulator: for
  // measuring how long something took. Instants of different workers are not comparable.
  [[nodiscard]] Instant now() const { return caller()->strand()->runtime().now(); }

  // Parks until so much time has passed on this worker's own time line, also if a caller gives up
  // meanwhile. Throws RpcError when the node ends.
  void sleep(Duration time) const { caller()->sleep(time); }

  // A future that is complete once so much time has passed. It holds nothing up: what waits for it
  // when the node ends gets why it ended, and its continuations do not run then. A function that is
  // served may return what it does then: no stack is held meanwhile.
  [[nodiscard]] Future<Unit> after(Duration time) const { return caller()->after(time); }

  // ---- clean-up ----

  // While what it returns lives, on this stack, calls are not given up with the call that runs
  // here, and have their time until then instead of what that one has left: calls, creations,
  // streams, fetches, gatherings and passes, through whatever object. So a lock, a lease or a slot
  // at another worker is given back whether or not somebody still waits for the function that holds
  // it:
  //
  //   ~Lease() {
  //     const Shield shield = context_.shielded(std::chrono::seconds(5));
  //     try { slot_.rpc_sync(&Slot::give); } catch (const RpcError&) {}  // The slot may be lost.
  //   }
  //
  // Take in one, too: a call that is given up may have been served. Calls that destructors make
  // while an exception leaves an execution are shielded without asking, and have the time of any
  // call. Shielded calls are recorded in no autograd context: nobody waits for gradients of theirs.
  // In a main, which nobody gives up, a shield sets this and the time. Never parks. Throws RpcError
  // of kind bad_arguments for a time that is not above zero.
  [[nodiscard]] Shield shielded(Duration time) const { return caller()->shield(time); }

  // ---- futures ----

  // A promise that this worker's code completes. A function that is served may return its future
  // (asynchronous execution): the answer leaves when it is completed, and no stack is held
  // meanwhile.
  template <class T>
  [[nodiscard]] Promise<T> promise() const {
    return Promise<T>(caller()->strand());
  }

  // A future of all values; see when_all. A vector may be empty; or at least two futures of any
  // types, whose values become a tuple. IfOneFails::cancel_rest gives the others up then.
  template <class T>
  [[nodiscard]] Future<std::vector<T>> when_all(const std::vector<Future<T>>& futures) const {
    return rehearsal::when_all(caller()->strand(), futures);
  }
  template <class T>
  [[nodiscard]] Future<std::vector<T>> when_all(IfOneFails if_one_fails,
                                                const std::vector<Future<T>>& futures) const {
    return rehearsal::when_all(caller()->strand(), if_one_fails, futures);
  }
  template <class A, class B, class... More>
  [[nodiscard]] Future<std::tuple<A, B, More...>> when_all(const Future<A>& a, const Future<B>& b,
                                                           const Future<More>&... more) const {
    return rehearsal::when_all(a, b, more...);
  }
  template <class A, class B, class... More>
  [[nodiscard]] Future<std::tuple<A, B, More...>> when_all(IfOneFails if_one_fails,
                                                           const Future<A>& a, const Future<B>& b,
                                                           const Future<More>&... more) const {
    return rehearsal::when_all(if_one_fails, a, b, more...);
  }

  // The outcomes of all futures, values and errors; see collect_all. As those above.
  template <class T>
  [[nodiscard]] Future<std::vector<Result<T>>> collect_all(
      const std::vector<Future<T>>& futures) const {
    return rehearsal::collect_all(caller()->strand(), futures);
  }
  template <class T>
  [[nodiscard]] Future<std::vector<Result<T>>> collect_all(
      IfOneFails if_one_fails, const std::vector<Future<T>>& futures) const {
    return rehearsal::collect_all(caller()->strand(), if_one_fails, futures);
  }
  template <class A, class B, class... More>
  [[nodiscard]] auto collect_all(const Future<A>& a, const Future<B>& b,
                                 const Future<More>&... more) const {
    return rehearsal::collect_all(a, b, more...);
  }
  template <class A, class B, class... More>
  [[nodiscard]] auto collect_all(IfOneFails if_one_fails, const Future<A>& a, const Future<B>& b,
                                 const Future<More>&... more) const {
    return rehearsal::collect_all(if_one_fails, a, b, more...);
  }
};

}  // namespace rehearsal
