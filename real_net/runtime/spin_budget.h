#pragma once

#include <algorithm>

#include "core/base/time.h"

namespace rehearsal::real {

// How long a poller looks at the network again and again before it sleeps. A sleeping thread costs
// some 50 µs to wake, so a wait that is about to end is better spun through; a long one is not.
class SpinBudget {
 public:
  explicit SpinBudget(Duration limit) : limit_(limit), present_(limit) {}

  [[nodiscard]] Duration present() const { return present_; }

  // Something came after `waited`, which ended the spinning (`spinning`) or the sleep after it.
  void note(Duration waited, bool spinning) {
    if (spinning || waited <= kWorthSpinning * limit_) {
      present_ = std::min(limit_, 2 * present_ + limit_ / 8);
    } else {
      present_ = present_ / 2;
    }
  }

 private:
  // A sleep that was shorter would mostly have been spun through: waking is part of it.
  static constexpr int kWorthSpinning = 2;

  const Duration limit_;
  Duration present_;
};

}  // namespace rehearsal::real
