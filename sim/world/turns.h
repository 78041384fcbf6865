#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/time.h"

// Code that asks again and again and never waits, as a loop does that tries again what fails at
// once, would keep virtual time from passing: what it waits for could never come. On a machine it
// takes time. So it has turns: after each, time passes, and others go on.
namespace rehearsal::sim {

// So often a stack goes through a wait that is over already, or so many continuations run one
// behind the other, in one turn.
inline constexpr uint64_t kPassesInTurn = 1000;

// The length of a turn, the n-th in a row, from 1: a millisecond, as long as code may well be busy;
// then each twice as long as the one before, up to a second, so that it is not run for long.
[[nodiscard]] inline Duration length_of_turn(uint64_t turn) {
  constexpr uint64_t kEven = 128;
  constexpr uint64_t kDoublingsMax = 10;
  const uint64_t doublings = turn > kEven ? std::min(turn - kEven, kDoublingsMax) : 0;
  return std::chrono::milliseconds(int64_t{1} << doublings);
}

}  // namespace rehearsal::sim
