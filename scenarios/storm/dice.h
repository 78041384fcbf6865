#pragma once

#include <cstdint>

#include "core/base/hash.h"
#include "core/base/ids.h"

namespace rehearsal::storm {

// The numbers that a storm's program is drawn from: they depend on the seed and on what they are
// for, never on when they are drawn.
class Dice {
 public:
  Dice(Seed seed, uint64_t purpose) : state_(mix(seed.value, purpose)) {}

  // In [0, n).
  uint64_t draw(uint64_t n) {
    const auto wide = static_cast<unsigned __int128>(mix(state_, ++drawn_)) * n;
    return static_cast<uint64_t>(wide >> 64);
  }
  bool happens(uint64_t percent) { return draw(100) < percent; }
  // 63 bits: what a value can carry.
  uint64_t word() { return mix(state_, ++drawn_) >> 1; }

 private:
  uint64_t state_;
  uint64_t drawn_ = 0;
};

}  // namespace rehearsal::storm
