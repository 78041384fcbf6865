#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/api/program.h"
#include "core/base/trace.h"
#include "core/node/node.h"
#include "record/record_file.h"

namespace rehearsal::sim {

class EventLines;

struct ReplayOptions {
  // Sees what the node does, beside the comparison; null: nobody does.
  Trace* trace = nullptr;
  // Told of each input before the node is given it; null: nobody is.
  std::function<void()> on_entry = nullptr;
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

// An exception of user code, as the error that it became.
struct ReplayedThrow {
  std::string error;
  std::string place;  // lines: "thrown in refuse at FILE:12", then its callers
  bool operator==(const ReplayedThrow&) const = default;
};

struct ReplayReport {
  uint64_t entries = 0;  // inputs that the strand took
  uint64_t acts = 0;     // events and orders of the node that were as recorded
  std::optional<Divergence> divergence;
  // Whether the worker's executions have woken each other, by primitives of Boost.Fiber, on several
  // threads. In which order they came to a primitive that was free the record does not say, so that
  // the replay may differ from it.
  bool woke_beside_threads = false;
  // Whether the record tells how the worker ended, and so does the replay: with `failure`, if any.
  // Else the record stops in the middle, as the worker's process did.
  bool ended = false;
  std::optional<Error> failure;
  // How many of each thing the node held when it had shut down in good order; see Node.
  std::optional<NodeCensus> census_at_end;
  // Where user code threw, each place once, in the order of time; not all if there are very many.
  std::vector<ReplayedThrow> throws;
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
