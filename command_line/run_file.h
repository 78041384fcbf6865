// A run written down to be replayed: the arguments of `run`, or of `explore` for one schedule, the
// command and the scenario on the first line, a flag and its value on each other one, `end` on the
// last. Decisions are in the order of their keys, each with a few words behind a # that say what it
// makes happen. Lines that begin with # are for people.
#pragma once

#include <string>
#include <vector>

#include "command_line/outcome.h"

namespace rehearsal::command_line {

// Such a file's text.
[[nodiscard]] std::string run_file_text(const RunSettings& settings,
                                        const sim::RunFailure& failure);

// The words of `run` or `explore` that it holds, as parse_arguments takes them: only those that
// run_file_text writes, so that whoever wrote the file cannot make the tool write another one or
// start a process. Throws WrongUse, with a line that begins with the name.
[[nodiscard]] std::vector<std::string> read_run_file(const std::string& name);

}  // namespace rehearsal::command_line
