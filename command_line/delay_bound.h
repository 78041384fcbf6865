// Delay bounding as an enumeration (Emmi, Qadeer, Rakamarić, POPL 2011): every schedule of one seed
// with at most so many deviations from first come, first served. A deviation is one choice at which
// the event that is first waits until the one behind it has happened; with several deviations at
// one choice, so many events wait.
#pragma once

#include <cstdint>
#include <optional>

#include "command_line/commands.h"

namespace rehearsal::command_line {

struct DelaySearch {
  uint64_t choices = 0;    // at which the schedule without deviations could deviate
  uint64_t schedules = 0;  // that were run
  uint64_t decisions = 0;  // events of workers in them
  bool complete = false;   // all of them, or all of the shard's
  double seconds = 0;
  std::optional<RunSettings> failed;  // the first, in the order of few deviations and early ones
  RunOutcome outcome;                 // of that one
};

// Of the settings, the strategy says nothing here. Of several shards, each takes its part of the
// schedules with one deviation and what follows from them; the first one also takes the schedule
// without any.
[[nodiscard]] DelaySearch search_delays(const Tool& tool, const HuntCommand& command,
                                        const RunSettings& settings);

}  // namespace rehearsal::command_line
