#pragma once

#include <string>

#include "sim/explain/story.h"

namespace rehearsal::sim {

// The run in the JSON format that Perfetto (ui.perfetto.dev) and chrome://tracing open, in virtual
// time: a process for each worker; executions as slices, with their waits (on as many threads as
// run beside each other); calls as async slices, from where they are made to their answer, with
// arguments and source lines; messages as arrows from their sending to where they are taken, notes
// of numbers as curves, all else as instants; what befalls the whole cluster in a process of its
// own. Times are microseconds.
[[nodiscard]] std::string perfetto_trace(const Chronicle& chronicle, const Subject& subject);

}  // namespace rehearsal::sim
