#include "core/checkpoint/crowded_keys.h"

#include <algorithm>
#include <bit>

namespace rehearsal {

// As c10's ska_ordered::order_preserving_flat_hash_map finds a place: Fibonacci hashing, then the
// next one that is free. Which keys are moved on depends on their order, how far the last one is
// does not.
bool are_crowded(std::vector<uint64_t> hashes) {
  constexpr uint64_t kFibonacci = 11400714819323198485U;
  constexpr uint64_t kPlacesForEach = 8;
  constexpr int kDistancesMin = 4;
  if (hashes.size() < kDistancesMin) return false;
  const int bits = std::bit_width(kPlacesForEach * hashes.size() - 1);
  for (uint64_t& hash : hashes) hash = (kFibonacci * hash) >> (64 - bits);
  std::sort(hashes.begin(), hashes.end());
  const auto distances = static_cast<uint64_t>(std::max(bits, kDistancesMin));
  uint64_t free = 0;
  for (const uint64_t wanted : hashes) {
    free = std::max(free, wanted);
    if (free - wanted >= distances) return true;
    ++free;
  }
  return false;
}

}  // namespace rehearsal
