#pragma once

#include <cstdint>
#include <vector>

#include "core/base/time.h"
#include "sim/world/local_clock.h"

namespace rehearsal::sim {

// The faults that the machines of a run do to their workers, beside crashing.
struct MachineFaults {
  uint64_t pause_millionths = 0;  // for each event of a worker: nothing happens there for a time
  Duration pause_min{};           // it lasts no less; zero: a 256th of the longest
  Duration pause_max{};
  Duration pause_gap{};  // no other machine pauses for so long behind its end

  uint64_t jump_millionths = 0;  // for each event of a worker: its clock jumps forward
  Duration jump_max{};
  Duration jump_gap{};  // the same clock does not jump again for so long

  std::vector<Duration> steps;     // by worker: how long each of its events takes; empty: no time
  std::vector<LocalClock> clocks;  // by worker; empty: all show virtual time

  // Whether there is anything to look after while the run goes on.
  [[nodiscard]] bool any() const {
    return pause_millionths > 0 || jump_millionths > 0 || !steps.empty();
  }
};

}  // namespace rehearsal::sim
