// A run told as a story: what happened, what decided, and the pictures of it.
#pragma once

#include <optional>
#include <string>

#include "command_line/commands.h"
#include "command_line/output_files.h"
#include "sim/explain/story.h"

namespace rehearsal::command_line {

struct Explanation {
  std::optional<sim::RunFailure> failure;  // how the run ended; without one it held
  sim::Chronicle chronicle;
  sim::Subject subject;
  std::string spans;  // of all calls, for ui.perfetto.dev; empty: there are none
};

// Runs it once more, in a child process, and takes down what happens; also of a run that ends its
// process. Of a failure all of whose choices are given (--benign, --schedule) it looks, for some
// seconds, for the pair of events whose order decides. Empty if there is nothing to tell: the run
// is not simulated, or left no history. `hangs`: it is known to, and need not be watched for long.
// Throws if what happens cannot be taken down, the disk being full.
// `with_spans`: somebody keeps them; of a run with very many calls, writing them takes longer than
// the run.
[[nodiscard]] std::optional<Explanation> explain_run(const Tool& tool, const RunSettings& run,
                                                     bool hangs, bool with_spans);

// The same for a run that failed, and prints the diagram where people read it; `print_failure`
// comes after it.
std::optional<Explanation> explain_failure(const Tool& tool, const RunSettings& settings,
                                           const sim::RunFailure& failure, bool with_spans);

// Writes the page and the trace; an empty name is for none.
void write_pictures(OutputFiles& files, const Explanation& explanation,
                    const std::string& html_file, const std::string& perfetto_file);

}  // namespace rehearsal::command_line
