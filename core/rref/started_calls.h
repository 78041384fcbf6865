#pragma once

#include <memory>
#include <vector>

#include "core/base/future.h"

namespace rehearsal {

// The futures of calls that one execution has started, of any types, to be waited for together.
class StartedCalls {
 public:
  template <class T>
  void add(const Future<T>& future) {
    observers_.push_back([state = future.state()](UniqueFunction<void(const MaybeError&)> done) {
      state->observe([done = std::move(done)](FutureState<T>& complete) mutable {
        done(complete.result().ok() ? MaybeError() : MaybeError(complete.result().error()));
      });
    });
  }

  [[nodiscard]] size_t size() const { return observers_.size(); }

  // Parks until all that were added are complete, and forgets them. The error of the one that was
  // added first among those that have one.
  [[nodiscard]] Status wait(const std::shared_ptr<Mailbox>& mailbox);

 private:
  using Observe = UniqueFunction<void(UniqueFunction<void(const MaybeError&)>)>;
  std::vector<Observe> observers_;
};

}  // namespace rehearsal
