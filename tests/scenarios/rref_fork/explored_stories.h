// The stories of rref_fork, each explored completely with at most one fault.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/scenarios/rref_fork/under_way.h"

namespace rehearsal::sim::explore {

using Matrix = std::array<std::array<bool, kLetters>, kLetters>;

inline constexpr std::array kFaults = {Transition::Kind::cut, Transition::Kind::crash,
                                       Transition::Kind::give_up};

// The pairs of letters that stories together have brought on their way at once.
struct Seen {
  Matrix together{};
  std::map<Transition::Kind, Matrix> at;
  std::map<Transition::Kind, Matrix> after;
};

struct Explored {
  Seen one_reference;
  Seen any;
  std::vector<std::string> failures;
  std::map<std::string, uint64_t> schedules;  // by story
};

// All of them, once for all tests, in two processes side by side. REQUIRES: no other thread is in
// this process.
[[nodiscard]] const Explored& explored();

}  // namespace rehearsal::sim::explore
