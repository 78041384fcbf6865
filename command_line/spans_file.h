// The file of spans that `run --spans` writes.
#pragma once

#include <filesystem>
#include <string>

#include "command_line/outcome.h"
#include "observe/spans.h"

namespace rehearsal::command_line {

// Writes the spans of a run that has ended. If they cannot be written, the disk being full, nothing
// is left of it, nor of an earlier one, and a run that has held fails with that: its result is told
// all the same.
void write_spans_file(const std::string& file, const observe::SpanFile& spans, RunOutcome& outcome);

// The same with the files that the workers have left in `folder`, put together. A worker that
// crashed left none.
void merge_spans_files(const std::filesystem::path& folder, const std::string& file,
                       RunOutcome& outcome);

}  // namespace rehearsal::command_line
