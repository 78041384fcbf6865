// A person typed or pointed us to something that cannot be used. The command line prints the
// message as its one line, whatever was typed, and ends with exit status 2.
#pragma once

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include "core/base/printable.h"

namespace rehearsal {

class WrongUse : public std::runtime_error {
 public:
  explicit WrongUse(const std::string& text) : std::runtime_error(printable(text)) {}
};

// Of a file that could not be opened to be read, for which errno says why. `file` may have the flag
// in front; `instead` is what to do.
[[nodiscard]] inline WrongUse unreadable(const std::string& file, const std::string& instead) {
  return WrongUse(file + ": cannot be read: " + std::strerror(errno) + "; " + instead);
}

}  // namespace rehearsal
