#pragma once

#include <string>

#include "sim/hunt/trial_runs.h"

namespace rehearsal::sim {

// The files that a failure leaves in a folder of its own: `failure.run` (REHEARSAL_RUN=@FILE),
// `failure.txt` (the message, and the run told as a diagram), `events.txt` (a line for each event),
// `failure.html` (a page to click through), `failure.trace.json` (for ui.perfetto.dev) and, if the
// task takes them, `failure.spans.json` (the spans of all calls, for the same). Without a cluster
// there are only the first two. Runs the failure once more, and, for the pair of events that
// decides, once without each of its decisions. False if the folder cannot be written.
[[nodiscard]] bool write_report_folder(TrialRuns& runs, const Hunted& hunted);

}  // namespace rehearsal::sim
