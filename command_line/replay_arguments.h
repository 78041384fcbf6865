// The words behind `rehearsal replay`.
#pragma once

#include <string>
#include <vector>

#include "command_line/arguments.h"

namespace rehearsal::command_line {

// Throws WrongUse: also if the file holds nothing that can be replayed.
[[nodiscard]] ParsedCommand parse_replay(const std::vector<std::string>& words,
                                         const std::vector<Scenario>& scenarios,
                                         const Backends& backends);

}  // namespace rehearsal::command_line
