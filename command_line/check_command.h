// `check`: a run over TCP judged from the records of its workers, as a simulated run is.
#pragma once

#include <string>
#include <vector>

#include "command_line/arguments.h"

namespace rehearsal::command_line {

// `words` are those behind the command. Reads all records in and below the folder. Throws WrongUse,
// with one line, if one cannot be replayed by this program, or they are of different runs.
[[nodiscard]] ParsedCommand parse_check(const std::vector<std::string>& words,
                                        const std::vector<Scenario>& scenarios,
                                        const Backends& backends);

}  // namespace rehearsal::command_line
