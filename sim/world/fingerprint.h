#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/hash.h"

namespace rehearsal::sim {

// A rolling 128-bit hash over the events of a run, in order, with a checkpoint every 1,024 events:
// two runs are the same if their fingerprints are, and where they part lies between two
// checkpoints.
class Fingerprint {
 public:
  static constexpr uint64_t kCheckpointEvents = 1024;

  // One event, as an even number of words. Each pair is folded in by one wide multiplication, and
  // is added again behind it: a factor of zero loses nothing.
  template <size_t N>
  void fold(const std::array<uint64_t, N>& words) {
    static_assert(N % 2 == 0);
#pragma GCC unroll 8  // all, so that the words stay in registers
    for (size_t i = 0; i < N; i += 2) {
      const uint64_t one = state_.low ^ words[i] ^ 0x9e3779b97f4a7c15ULL;
      const uint64_t other = state_.high ^ words[i + 1] ^ 0xd1b54a32d192ed03ULL;
      const auto product = static_cast<unsigned __int128>(one) * other;
      state_.low = static_cast<uint64_t>(product) ^ std::rotl(other, 32);
      state_.high = static_cast<uint64_t>(product >> 64) ^ one;
    }
    if (++events_ % kCheckpointEvents == 0) checkpoints_.push_back(state_);
  }

  [[nodiscard]] uint64_t events() const { return events_; }
  [[nodiscard]] const Hash128& value() const { return state_; }
  [[nodiscard]] const std::vector<Hash128>& checkpoints() const { return checkpoints_; }

 private:
  Hash128 state_;
  uint64_t events_ = 0;
  std::vector<Hash128> checkpoints_;
};

// 32 hexadecimal digits.
[[nodiscard]] std::string to_hex(const Hash128& hash);

}  // namespace rehearsal::sim
