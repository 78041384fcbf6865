#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/api/program.h"
#include "core/base/trace.h"
#include "record/record_file.h"

namespace rehearsal::sim {

class EventLines;

struct ReplayOptions {
  // Sees what the node does, beside the comparison; null: nobody does.
  Trace* trace = nullptr;
  // Gets a line for each event, with the time since the first input; null: nobody does.
  EventLines* lines = nullptr;
};

// Where a replay does something else than the record.
struct Divergence {
  uint64_t entry = 0;  // from 0
  std::string input;   // of that entry, in words
  std::string text;    // what the record says, and what happened
};

// Called before each entry is given to the node: a place for a breakpoint. Where the debugger does
// not know `entry`, in a release, `ignore 1 512` stops before entry 512.
void replay_entry(uint64_t entry);

struct ReplayReport {
  uint64_t entries = 0;  // inputs that the strand took
  uint64_t acts = 0;     // events and orders of the node that were as recorded
  std::optional<Divergence> divergence;
  // Whether the record tells how the worker ended, and so does the replay: with `failure`, if any.
  // Else the record stops in the middle, as the worker's process did.
  bool ended = false;
  std::optional<Error> failure;
};

// Why this record cannot be replayed by this process at all, in one line; nothing if it can: it is
// of another build, …
[[nodiscard]] std::optional<std::string> refusal(const record::Record& record);
// … or of another program, or computed on another kind of processor. Sets LibTorch's threads.
[[nodiscard]] std::optional<std::string> refusal(const record::Record& record,
                                                 const Program& program);

// Runs the worker of the record alone, on this thread: gives its node what the record holds, in the
// same order, and compares all that the node does. User code runs as it did. REQUIRES: no refusal.
[[nodiscard]] ReplayReport replay(const record::Record& record, const Program& program,
                                  const ReplayOptions& options = {});

}  // namespace rehearsal::sim
