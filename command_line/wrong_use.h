// A person typed or pointed us to something that cannot be used. The command line prints the
// message as its one line and ends with exit status 2.
#pragma once

#include <stdexcept>

namespace rehearsal {

class WrongUse : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rehearsal
