// The folder that `hunt --out` and `explore --out` name, and what a failure leaves there:
// failure.json, the report; failure.run, for `replay` and `report`; failure.txt, what people read;
// failure.html, the page; failure.trace.json and failure.spans.json, for ui.perfetto.dev.
#pragma once

#include <optional>
#include <string>

#include "command_line/explanation.h"
#include "command_line/outcome.h"
#include "command_line/output_files.h"

namespace rehearsal::command_line {

// The name of a file in it; empty without a folder.
[[nodiscard]] std::string file_in(const std::string& folder, const char* name);

// Each does nothing without a folder.

// Those of an earlier failure, which would stand beside the run of another one.
void remove_pictures(const std::string& folder);
void leave_run(OutputFiles& files, const std::string& folder, const Json& report,
               const RunSettings& settings, const sim::RunFailure& failure);
void leave_pictures(OutputFiles& files, const std::string& folder,
                    const std::optional<Explanation>& explanation);

}  // namespace rehearsal::command_line
