#include "real_net/runtime/thread_signal.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace rehearsal::real {
namespace {

// Sleeps while `word` holds `expected`. May return early for no reason.
void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, const timespec* limit) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, limit,
          nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr,
          0);
}

}  // namespace

void ThreadSignal::set() {
  if (state_.exchange(kSet) == kAsleep) futex_wake(state_);
}

bool ThreadSignal::take() {
  uint32_t expected = kSet;
  return state_.compare_exchange_strong(expected, kClear);
}

void ThreadSignal::wait() {
  while (!take()) {
    uint32_t expected = kClear;
    state_.compare_exchange_strong(expected, kAsleep);
    if (expected != kSet) futex_wait(state_, kAsleep, nullptr);
  }
}

bool ThreadSignal::wait_for(Duration limit) {
  if (take()) return true;
  uint32_t expected = kClear;
  if (state_.compare_exchange_strong(expected, kAsleep)) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
    const timespec relative{.tv_sec = seconds.count(), .tv_nsec = (limit - seconds).count()};
    futex_wait(state_, kAsleep, &relative);
    expected = kAsleep;
    if (state_.compare_exchange_strong(expected, kClear)) return false;
  }
  return take();
}

}  // namespace rehearsal::real
