#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "core/base/check.h"
#include "core/base/ids.h"

namespace rehearsal {

// The things of several workers that wait for their turn: each worker's in their order, and the
// workers one after the other, so that a worker with many takes no turn from one with few.
template <class T>
class FairQueue {
 public:
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  void push(WorkerId of, T item) {
    waiting_[of].push_back(std::move(item));
    ++size_;
  }

  // The next one: the first of the worker whose turn it is.
  [[nodiscard]] T pop() {
    REHEARSAL_CHECK(size_ > 0);
    auto next = waiting_.upper_bound(last_);
    if (next == waiting_.end()) next = waiting_.begin();
    last_ = next->first;
    T item = std::move(next->second.front());
    next->second.pop_front();
    took_from(next);
    return item;
  }

  // Makes room for one of this worker: the last one of the worker that has most waiting, if that
  // has more than this one would have.
  [[nodiscard]] std::optional<T> give_way(WorkerId to) {
    auto most = waiting_.end();
    for (auto at = waiting_.begin(); at != waiting_.end(); ++at)
      if (most == waiting_.end() || at->second.size() > most->second.size()) most = at;
    const auto own = waiting_.find(to);
    const size_t would_have = 1 + (own == waiting_.end() ? 0 : own->second.size());
    if (most == waiting_.end() || most->second.size() <= would_have) return std::nullopt;
    T item = std::move(most->second.back());
    most->second.pop_back();
    took_from(most);
    return item;
  }

 private:
  using Waiting = std::map<WorkerId, std::deque<T>>;

  void took_from(typename Waiting::iterator worker) {
    if (worker->second.empty()) waiting_.erase(worker);
    --size_;
  }

  Waiting waiting_;  // none is empty
  WorkerId last_{};  // whose turn was last
  size_t size_ = 0;
};

}  // namespace rehearsal
