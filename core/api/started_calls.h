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
    started_.push_back(future.core());
  }

  [[nodiscard]] size_t size() const { return started_.size(); }

  // Parks until all that were added are complete, and forgets them. The error of the one that was
  // added first among those that have one.
  [[nodiscard]] Status wait(const std::shared_ptr<NodeStrand>& strand);

 private:
  std::vector<std::shared_ptr<FutureCore>> started_;
};

}  // namespace rehearsal
