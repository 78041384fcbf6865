#pragma once

#include <optional>

#include "core/base/execution.h"
#include "core/base/time.h"

namespace rehearsal {

// A scope in which what an execution calls is not given up with it: see WorkerAccess::shielded.
// Belongs to the stack on which it was made, and ends there, the inner one of two first.
class [[nodiscard]] Shield {
 public:
  Shield(Execution& execution, Instant until)
      : execution_(execution), before_(execution.shielded_until) {
    execution.shielded_until = until;
  }
  ~Shield() { execution_.shielded_until = before_; }
  Shield(const Shield&) = delete;
  Shield& operator=(const Shield&) = delete;

 private:
  Execution& execution_;
  const std::optional<Instant> before_;
};

}  // namespace rehearsal
