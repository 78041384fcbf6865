#pragma once

#include <string>

#include "sim/device/accesses.h"

namespace rehearsal::sim::device {

// Two accesses to the same bytes that nothing puts in order, and where in the program's source each
// operation was called ("training.cc:27", or empty).
struct MissingWait {
  Access earlier, later;
  std::string earlier_place, later_place;
};

// Told in full: the two operations, their streams, and which wait would do.
[[nodiscard]] std::string text_of(const MissingWait& missing);

// The same for all of which telling one is enough: of operators of the same names, called at the
// same places, on the same streams.
[[nodiscard]] std::string key_of(const MissingWait& missing);

}  // namespace rehearsal::sim::device
