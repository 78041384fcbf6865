// The words behind `rehearsal report`.
#pragma once

#include <string>
#include <vector>

#include "command_line/arguments.h"

namespace rehearsal::command_line {

// Throws WrongUse: also if the file holds no run.
[[nodiscard]] ParsedCommand parse_report(const std::vector<std::string>& words,
                                         const std::vector<Scenario>& scenarios,
                                         const Backends& backends);

}  // namespace rehearsal::command_line
