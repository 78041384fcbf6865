// The finding of `verify`: that two runs of the same seed differ, and where they part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "command_line/outcome.h"
#include "command_line/surroundings.h"

namespace rehearsal::command_line {

struct Difference {
  // event: the first one that differs is known. result: every event is equal, what came of them is
  // not. vanished: further runs of the seed were equal. untold: they could not be compared, and
  // `why` says why not.
  enum class Kind { event, result, vanished, untold };
  Kind kind = Kind::vanished;
  uint64_t event = 0;         // its number in the run, from 1
  std::string key;            // what names it
  std::string first, second;  // it, or the result, in each of the two runs
  std::string why;
  std::vector<std::string> causes;  // earlier events that it follows from, oldest first
  // Runs that must come before in the same process, or else the seed's runs are equal; empty: it
  // differs by itself, in a process of its own.
  std::vector<uint64_t> after_seeds;
};

// Everything about an outcome that a second run must repeat.
[[nodiscard]] bool same_outcome(const RunOutcome& one, const RunOutcome& other);

// The runs of one process up to the one that differs, in their order; that one is the last.
using Runs = std::vector<RunSettings>;

// Two runs of the same seed, which ends both of these, have differed. Runs it again, traced: first
// alone in two new processes, a few times, because what an address or a clock decides may come out
// alike by chance. If nothing differs, then in a process that has run others before, and looks for
// the fewest of them that matter. Throws if a process or a trace cannot be made.
[[nodiscard]] Difference find_difference(const Surroundings& surroundings, const Runs& first,
                                         const Runs& second);

// Some lines for people, without a line end behind the last.
[[nodiscard]] std::string to_text(const Difference& difference);
[[nodiscard]] Json to_json(const Difference& difference);

}  // namespace rehearsal::command_line
