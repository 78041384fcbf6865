#pragma once

#include <string>

#include "sim/explain/story.h"

namespace rehearsal::sim {

// The run in the JSON format that Perfetto (ui.perfetto.dev) and chrome://tracing open, in virtual
// time: a process for each worker, executions as slices (on as many threads as run beside each
// other), messages as arrows from their sending to where they are taken, all else as instants;
// faults of the whole cluster in a process of their own. Times are microseconds.
[[nodiscard]] std::string perfetto_trace(const Chronicle& chronicle, const Subject& subject);

}  // namespace rehearsal::sim
