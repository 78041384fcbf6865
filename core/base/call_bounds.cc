#include "core/base/call_bounds.h"

#include <exception>

namespace rehearsal {

CallBounds call_bounds(const Execution& running) {
  if (running.shielded_until) return {running.shielded_until, true};
  if (std::uncaught_exceptions() > 0) return {std::nullopt, true};
  return {running.deadline, false};
}

}  // namespace rehearsal
