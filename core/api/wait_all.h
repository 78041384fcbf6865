#pragma once

#include "core/api/calls.h"

namespace rehearsal {

// A scope whose asynchronous calls are all waited for at its end:
//
//   WaitAll scope(worker);
//   for (const std::string& trainer : trainers) scope.rpc_async(trainer, &run_epoch);
//   scope.finish();   // throws the first error, in the order of the calls
//
// Those of `rpc_async` count, not those that wait themselves, nor references that are created. The
// destructor waits as well, for what `finish` has not, but gives no errors. Of one execution.
class WaitAll : public Calls {
 public:
  explicit WaitAll(const Calls& calls) : Calls(calls) { note_started_in(&started_); }
  ~WaitAll();
  WaitAll(const WaitAll&) = delete;
  WaitAll& operator=(const WaitAll&) = delete;

  // Parks until all that was started is complete, whether it fails or not. Throws RpcError.
  void finish();

  // Calls that were started and not waited for.
  [[nodiscard]] size_t size() const { return started_.size(); }

 private:
  StartedCalls started_;
};

}  // namespace rehearsal
