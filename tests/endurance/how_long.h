#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "scenarios/storm/dice.h"

namespace rehearsal::endurance {

// How long processes storm; nodes of one process do so for a third of it each. In seconds,
// REHEARSAL_STORM_SECONDS says otherwise.
inline std::chrono::seconds how_long() {
  const char* said = std::getenv("REHEARSAL_STORM_SECONDS");
  return std::chrono::seconds(said == nullptr ? 60 : std::max(1, std::atoi(said)));
}

// Whether the workers of a storm with this seed meet in the middle of their work (see
// storm::Actor): one that came back too late for that waits for a time that only the simulator has.
inline bool has_a_meeting(uint64_t seed) {
  constexpr uint64_t kMeets = 0x6d65657473;
  return storm::Dice(Seed{seed}, kMeets).happens(30);
}

// The next seed whose workers do not.
inline uint64_t next_seed(uint64_t seed) {
  do ++seed;
  while (has_a_meeting(seed));
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
