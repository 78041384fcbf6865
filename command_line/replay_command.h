// `replay` of a record: one real worker again, alone.
#pragma once

#include <string>
#include <vector>

#include "command_line/commands.h"

namespace rehearsal::command_line {

// Throws WrongUse, with one line, unless this program can replay that record.
[[nodiscard]] ReplayCommand read_replay(const std::string& file,
                                        const std::vector<Scenario>& scenarios,
                                        const Backends& backends);

}  // namespace rehearsal::command_line
