#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/explore/dependence.h"

namespace rehearsal::sim::explore {

// One that may happen next.
struct Candidate {
  Transition transition;
  uint64_t event = 0;          // names what would happen, as long as it may
  std::vector<size_t> causes;  // steps of this run that made it possible, as far as is known
};

// Says what happens in a run: a schedule. A step is one pick and what happens then, from 0.
class Guide {
 public:
  static constexpr size_t kStop = SIZE_MAX;

  virtual ~Guide() = default;

  // The place of what happens next, or kStop: the run is not wanted any more. Called before each
  // step, at the end with nothing that could happen. The first candidate is what would happen
  // without a guide.
  [[nodiscard]] virtual size_t pick(const std::vector<Candidate>& enabled) = 0;

  // A choice that the present step leaves open, in [0, n).
  [[nodiscard]] virtual uint64_t choose(uint64_t n) = 0;

  // The present step receives what that earlier step sent.
  virtual void received_from(size_t step) = 0;
};

}  // namespace rehearsal::sim::explore
