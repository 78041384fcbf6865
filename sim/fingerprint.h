#pragma once

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

  // One event, as bytes without padding.
  void fold(const void* record, size_t bytes) {
    state_.low = hash_bytes(record, bytes, state_.low);
    state_.high = mix(state_.high ^ state_.low);
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
