// A person typed or pointed us to something that cannot be used. The command line prints the
// message as its one line, whatever was typed, and ends with exit status 2.
#pragma once

#include <stdexcept>
#include <string>

#include "core/base/printable.h"

namespace rehearsal {

class WrongUse : public std::runtime_error {
 public:
  explicit WrongUse(const std::string& text) : std::runtime_error(printable(text)) {}
};

}  // namespace rehearsal
