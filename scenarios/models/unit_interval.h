#pragma once

#include <cstdint>

namespace rehearsal::models {

// A hash as a number in [0, 1): its 53 upper bits, which a double holds exactly.
[[nodiscard]] inline double unit_interval(uint64_t hash) {
  return static_cast<double>(hash >> 11) * 0x1.0p-53;
}

}  // namespace rehearsal::models
