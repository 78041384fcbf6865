#pragma once

#include <chrono>
#include <cstdint>

namespace rehearsal {

// A length of time. Whole nanoseconds; arithmetic is exact.
using Duration = std::chrono::nanoseconds;

// The time line of one Runtime: virtual or monotonic. Its zero has no meaning, and instants of
// different runtimes are never compared. No clock of the standard library is behind it.
struct Timeline {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<Timeline>;
  static constexpr bool is_steady = true;
};
using Instant = std::chrono::time_point<Timeline, Duration>;

// When so much time has passed; a length of time that leads beyond all instants is over at the last
// of them. REQUIRES: `now` is not before the zero.
[[nodiscard]] constexpr Instant saturated(Instant now, Duration time) {
  return time < Instant::max() - now ? now + time : Instant::max();
}

}  // namespace rehearsal
