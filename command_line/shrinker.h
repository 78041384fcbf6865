// A run that fails, made small: smaller options, fewer faults, then the fewest decisions with the
// least values, all others benign. The order of events is one of deviations from first come, first
// served, whatever strategy found it. Only what fails alike is accepted: the same oracle, on the
// same kind of object.
#pragma once

#include <string>
#include <vector>

#include "command_line/commands.h"

namespace rehearsal::command_line {

struct ShrinkOrder {
  // As long as more than 40 decisions are left, which nobody reads, four times as much.
  Budget budget;
  // Gets what fails and is smallest so far, as `replay` and `shrink` read it, from the beginning
  // on: who ends the process can go on from it. One that cannot be written is tried again with the
  // next smaller run, and ends nothing. Empty: none.
  std::string file;
  bool hangs = false;  // the run is known to hang
};

// A failure that is not the one that is made small, seen on the way.
struct OtherFailure {
  RunSettings settings;
  sim::RunFailure failure;
};

struct Shrunk {
  enum class End {
    holds,       // there is nothing to shrink
    differs,     // two runs of it were not the same: nothing can be said of a third one
    unfinished,  // it had not ended when the time was up, nor for a while afterwards
    shrunk,
  };
  End end = End::holds;
  RunSettings settings;
  sim::RunFailure failure;
  size_t runs = 0;  // that it took
  double seconds = 0;
  std::string unwritten;             // why the order's file does not hold this run; empty: it does
  std::vector<OtherFailure> others;  // one of each kind, that with the fewest decisions
};
[[nodiscard]] Shrunk shrink_run(const Tool& tool, const RunSettings& settings,
                                const ShrinkOrder& order);

// For people, a line each: what else failed on the way, and how to repeat it.
[[nodiscard]] std::string others_text(const Tool& tool, const Shrunk& shrunk);
[[nodiscard]] Json others_json(const Tool& tool, const Shrunk& shrunk);

}  // namespace rehearsal::command_line
