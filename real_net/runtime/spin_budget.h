#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/time.h"

namespace rehearsal::real {

// How long a poller looks at the network again and again before it sleeps. A sleeping thread costs
// some 50 µs to wake, so looking pays where it often finds something, and nowhere else: it goes on
// while one look in four does. After that the poller sleeps at once, and tries again now and then,
// ever more rarely as long as it finds nothing.
class SpinBudget {
 public:
  explicit SpinBudget(Duration limit) : limit_(limit) {}

  // Of the turn that begins.
  [[nodiscard]] Duration next() {
    if (limit_ <= Duration::zero() || credit_ > 0) return limit_;
    if (++rested_ < rest_) return Duration::zero();
    rested_ = 0;
    return limit_;
  }

  // A turn that was given some time has ended: whether it found something before it slept.
  void note(bool found) {
    if (found) {
      credit_ = std::min(kCreditMax, credit_ + kFound);
      rest_ = kRestMin;
    } else if (credit_ > 0) {
      --credit_;
    } else {
      rest_ = std::min(2 * rest_, kRestMax);
    }
  }

 private:
  static constexpr int kFound = 3;
  static constexpr int kCreditMax = 12;
  static constexpr uint64_t kRestMin = 16;
  static constexpr uint64_t kRestMax = 1024;

  const Duration limit_;
  int credit_ = kCreditMax;
  uint64_t rest_ = kRestMin;  // turns without looking between two that try
  uint64_t rested_ = 0;
};

}  // namespace rehearsal::real
