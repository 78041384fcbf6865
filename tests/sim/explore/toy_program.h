#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/explore/guide.h"

namespace rehearsal::sim::explore {

// A little distributed program: nodes that answer messages with messages, on FIFO lanes, and faults
// that each happen at some point.
struct ToyProgram {
  struct Send {
    uint32_t to = 0;
    int message = 0;
  };
  std::map<uint32_t, std::vector<Send>> at_start;            // by node
  std::map<std::pair<uint32_t, int>, std::vector<Send>> on;  // by node and message received
  std::vector<Transition> faults;                            // cut, crash

  // One run. Returns what tells it from runs that are not equivalent: in which order dependent
  // steps happened, and with which choices. Empty if the guide stopped it.
  [[nodiscard]] std::string run(Guide& guide) const;
};

// A program drawn from a seed: two to four nodes, some messages, perhaps a fault.
[[nodiscard]] ToyProgram random_toy_program(uint64_t seed);

}  // namespace rehearsal::sim::explore
