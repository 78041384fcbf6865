#pragma once

#include <cstdint>

#include "core/base/time.h"

namespace rehearsal::sim {

// The monotonic clock of one machine: it was started at another time than the others, runs a little
// faster or slower, and may jump forward, as after a machine was suspended. It never goes back: a
// monotonic clock does not, and core has no other one.
//
//   local = offset + (1 + drift) · virtual time + jumps
class LocalClock {
 public:
  Duration offset{};
  int64_t drift_millionths = 0;

  [[nodiscard]] Instant local(Instant virtual_time) const;

  // The first instant of virtual time at which the clock shows `local` or later.
  [[nodiscard]] Instant virtual_time(Instant local) const;

  // REQUIRES: by > 0.
  void jump(Duration by);
  [[nodiscard]] Duration jumped() const { return jumped_; }

 private:
  Duration jumped_{};
};

}  // namespace rehearsal::sim
