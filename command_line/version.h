#pragma once

#include <string>

namespace rehearsal::command_line {

// The line that `rehearsal --version` prints: "rehearsal 0.1.0, LibTorch 2.11.0", and whether the
// rules of the protocol can be left out in this build. Behind its own name if it is another
// program: "train, rehearsal 0.1.0, LibTorch 2.11.0".
[[nodiscard]] std::string version_text(const std::string& program);

}  // namespace rehearsal::command_line
