#pragma once

#include <string>
#include <vector>

namespace rehearsal::sim {

// The functions on the calling stack, innermost first, for those who look for a mistake. Static
// ones of this program are named, too: it reads this program's file, and so is slow. A function
// without a name is given as file and offset.
[[nodiscard]] std::vector<std::string> call_stack();

}  // namespace rehearsal::sim
