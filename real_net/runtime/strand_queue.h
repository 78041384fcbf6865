#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "core/base/unique_function.h"

namespace rehearsal::real {

// The strand's queue, and who may run it. A thread that queues a task runs the strand itself if it
// is free; else the holder will. A holder releases the strand whatever is queued and then looks
// again, so that nothing is left behind.
class StrandQueue {
 public:
  // Queues; true if the caller now holds the strand and runs it.
  [[nodiscard]] bool queue(Task task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (held_) return false;
    held_ = true;
    return true;
  }

  // True if nobody held the strand; the caller holds it now.
  [[nodiscard]] bool take_if_free() {
    const std::lock_guard lock(mutex_);
    return !std::exchange(held_, true);
  }

  // For the holder: moves all that is queued to `batch`, which is empty; false if nothing is.
  [[nodiscard]] bool take_batch(std::vector<Task>& batch) {
    const std::lock_guard lock(mutex_);
    batch.swap(tasks_);
    return !batch.empty();
  }

  void release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
  }

  // True if something is queued and nobody held the strand; the caller holds it now.
  [[nodiscard]] bool take_again() {
    const std::lock_guard lock(mutex_);
    if (held_ || tasks_.empty()) return false;
    held_ = true;
    return true;
  }

 private:
  std::mutex mutex_;
  bool held_ = false;
  std::vector<Task> tasks_;
};

}  // namespace rehearsal::real
