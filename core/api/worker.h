#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/api/autograd_context.h"
#include "core/api/gather.h"
#include "core/api/registered_thread.h"
#include "core/api/worker_access.h"

namespace rehearsal {

// A worker as its own program sees it: what `worker_main(Worker&)` is given. Its calls are made by
// the execution of the calling stack: the worker's main, a thread that was registered
// (register_thread), or a function being served that reaches its worker through a reference of its
// own. When the node has ended, every use throws RpcError of kind node_stopped, on any thread.
class Worker : public WorkerAccess {
 public:
  explicit Worker(Calls calls) : WorkerAccess(std::move(calls)) {}

  // A new autograd context: what is called through it, or while a Recording of it lives, is
  // recorded.
  [[nodiscard]] AutogradContext autograd_context() const { return AutogradContext(*this); }

  // The values that the named workers give to the same gathering, by name; of all workers if none
  // are named, which they must be in a dynamic group. Each of them calls this, with the same names
  // in any order, as often as the others: which is why functions that are served, of which many run
  // at once, have no gatherings. Parks until the last has come, or the first one's time is up.
  // Small values without references: they all pass through the first worker in rank order. They
  // are recorded in no autograd context: a pass that reaches one fails. Throws RpcError: peer_lost
  // if one of them is lost or has come back in a new life, timeout, which at the first worker names
  // who is missing, bad_arguments, which names who has given no T.
  template <class T>
  [[nodiscard]] std::map<std::string, T> all_gather(const T& value,
                                                    const std::vector<std::string>& workers = {},
                                                    Timeout timeout = {}) const {
    Gathered gathered = gather(*caller(), gathering(workers), share_of(value), timeout);
    std::map<std::string, T> values;
    for (size_t i = 0; i < gathered.names.size(); ++i)
      values.emplace(gathered.names[i],
                     value_of_share<T>(std::move(gathered.shares[i]), gathered.names[i]));
    return values;
  }

  // Parks until all named workers, all if none are named, have come here; see all_gather.
  void barrier(const std::vector<std::string>& workers = {}, Timeout timeout = {}) const {
    static_cast<void>(gather(*caller(), gathering(workers), {}, timeout));
  }

  // Registers the calling thread, a std::thread that the main has started: while what is returned
  // lives, on that thread, it calls and waits as the main does. Over TCP only: a simulated cluster
  // is one thread. The shutdown waits for threads that are registered; the main joins its own.
  //
  //   std::thread loader([&worker] {
  //     const auto known = worker.register_thread("loader");
  //     worker.rpc_sync("ps", &push, read_batch());
  //   });
  //
  // `name` is for people; with the worker's name it seeds the thread's random numbers. Parks for a
  // moment. Throws RpcError: bad_arguments on a stack that is known already (so everywhere in the
  // simulator) and where the worker is recorded, node_stopped.
  [[nodiscard]] RegisteredThread register_thread(const std::string& name) const;

  // From when the main returns, the worker does not wait for the others: it ends at once, as
  // PyTorch's shutdown(graceful=False). They lose it: what they still ask of it fails with
  // peer_lost. Called by the main.
  void leave_at_once() const { caller()->node().leave_at_once(); }

 private:
  // Those who gather. Throws RpcError (bad_arguments) if a dynamic group's are not named.
  [[nodiscard]] const std::vector<std::string>& gathering(
      const std::vector<std::string>& workers) const;
};

}  // namespace rehearsal
