#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/explain/chronicle.h"

namespace rehearsal::sim {

// Two moments of a failing run whose order decides: with the first before the second it fails, the
// other way round it holds. Without a second one, what decides is that the first happens at all.
struct CriticalPair {
  size_t first = 0;
  std::optional<size_t> second;
  std::string text;  // for people, in at most three lines
};

// What is to be explained about a run.
struct Subject {
  std::string title;    // of the run, one line
  std::string failure;  // oracle, object and message; empty: it held
  std::string command;  // repeats the run; may be empty
  std::optional<CriticalPair> critical;
};

// The causal ids, as people read them, that a text names.
[[nodiscard]] std::vector<std::string> ids_in(std::string_view text);

// How much each moment matters to the failure. It counts what kind of moment it is (a crash more
// than a heartbeat, a rare fault more than one of hundreds), whether it is about an id that the
// failure names, and how near it is to the end of the run on the way back over its causes.
[[nodiscard]] std::vector<double> weigh(const Chronicle& chronicle, const Subject& subject);

}  // namespace rehearsal::sim
