#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/time.h"

namespace rehearsal::real {

// A thread sleeps on this binary semaphore with one waiter. A `set` that comes before the wait is
// kept, several of them count as one.
class ThreadSignal {
 public:
  // Ends the present wait, or the next one. Any thread; a system call only if the waiter sleeps.
  void set();

  // Waits for `set`. The one waiting thread only.
  void wait();

  // The same, at most this long. Whether it was set.
  bool wait_for(Duration limit);

 private:
  static constexpr uint32_t kClear = 0;
  static constexpr uint32_t kSet = 1;
  static constexpr uint32_t kAsleep = 2;

  bool take();

  std::atomic<uint32_t> state_{kClear};
};

}  // namespace rehearsal::real
