#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "scenarios/storm/actor.h"

namespace rehearsal::endurance {

// How long processes storm, in two halves; nodes of one process do so for a third of it each. In
// seconds, REHEARSAL_STORM_SECONDS says otherwise.
inline std::chrono::seconds how_long() {
  const char* said = std::getenv("REHEARSAL_STORM_SECONDS");
  return std::chrono::seconds(said == nullptr ? 60 : std::max(1, std::atoi(said)));
}

// The next seed whose workers do not meet: over TCP who comes back too late for that waits for
// long.
inline uint64_t next_seed(uint64_t seed) {
  do ++seed;
  while (storm::workers_meet(Seed{seed}));
  return seed;
}

// Counts from when it is made.
class Stretch {
 public:
  explicit Stretch(std::chrono::seconds length) : end_(Clock::now() + length) {}
  [[nodiscard]] bool over() const { return Clock::now() >= end_; }

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end_;
};

}  // namespace rehearsal::endurance
