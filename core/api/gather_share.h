#pragma once

#include <ATen/core/Tensor.h>

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "core/values/value.h"

namespace rehearsal {

// The share of one worker in a gathering: a value, encoded. References cannot be in it.
struct GatherShare {
  std::string bytes;
  std::vector<at::Tensor> tensors;
  friend void describe(GatherShare& share, auto&& fields) { fields(share.bytes, share.tensors); }
};

// Names one gathering: its members, in rank order, how many lives they have had together, and the
// number of gatherings that these members have had in these lives.
struct GatherRound {
  std::vector<uint32_t> members;
  uint64_t lives = 0;
  uint64_t number = 0;
  auto operator<=>(const GatherRound&) const = default;
  friend void describe(GatherRound& round, auto&& fields) {
    fields(round.members, round.lives, round.number);
  }
};

}  // namespace rehearsal
