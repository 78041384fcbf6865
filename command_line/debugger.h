// gdb on a run, with what it is told of runs by rehearsal-gdb.py.
#pragma once

#include <string>

namespace rehearsal::command_line {

// "gdb -x PATH", with rehearsal-gdb.py of the installation that this program belongs to, or of the
// source that it was built from; "gdb" if neither is there any more.
[[nodiscard]] std::string debugger();

}  // namespace rehearsal::command_line
