// Files that a person names to be read, which somebody else may have written.
#pragma once

#include <string>

namespace rehearsal::command_line {

// All bytes of a regular file of at most 256 MiB. `said` is what the person typed, the path with or
// without a flag, and `wanted` is what to name instead: "a file that 'hunt --json' wrote". Throws
// WrongUse, which begins with `said` and says why.
[[nodiscard]] std::string read_named(const std::string& said, const std::string& path,
                                     const std::string& wanted);

// Throws the same unless it can be opened.
void check_named(const std::string& said, const std::string& path, const std::string& wanted);

}  // namespace rehearsal::command_line
