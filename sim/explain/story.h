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
  std::string verdict;      // for people: where, and what follows from which order
  std::string decision;     // that brings the order about, in words; may be empty
  std::string second_text;  // what the second one is, also if the failing run never comes to it
  // Whether the two have to do with each other, and the run that holds makes all calls that the
  // program has made before the failure. Otherwise they may just be where the runs part.
  bool decides = false;
};

// The verdict, then what A and B are, and the decision; a line each.
[[nodiscard]] std::vector<std::string> lines_of(const Chronicle& chronicle,
                                                const CriticalPair& pair);

// The facts of a run that are to be explained.
struct Subject {
  std::string title;    // of the run, one line
  std::string failure;  // oracle, object and message; empty: it held
  std::string command;  // repeats the run; may be empty
  std::optional<CriticalPair> critical;
  std::vector<std::string> notes;  // what to say instead, lines
};

// A line of what was thrown, and the moment of the throw.
struct ThrownLine {
  std::string text;
  size_t moment = 0;
};

// Of a stack, where there is little room.
inline constexpr size_t kPlacesShown = 5;

// Where the exception that ended the failing main was thrown first, "thrown at store, in get:
// std::out_of_range: …", then, two letters further in, the places in the program's source,
// innermost first and at most so many; behind them who handed it on, up to the main. Empty: the
// failure is no exception.
[[nodiscard]] std::vector<ThrownLine> thrown_lines(const Chronicle& chronicle, size_t places);

// The causal ids, as people read them, that a text names.
[[nodiscard]] std::vector<std::string> ids_in(std::string_view text);

// How much each moment matters to the failure. It counts what kind of moment it is (a crash more
// than a heartbeat, a rare fault more than one of hundreds), whether it is about an id that the
// failure names, whether it is one of the calls and throws that led there (call_chain.h), and how
// near it is to the failure, or to the end of each worker, on the way back over its causes. The
// shutdown behind them counts little.
[[nodiscard]] std::vector<double> weigh(const Chronicle& chronicle, const Subject& subject);

}  // namespace rehearsal::sim
