#pragma once

#include <cstddef>
#include <string>

#include "core/base/result.h"
#include "real_net/worker/placement.h"

namespace rehearsal::real {

// The exception being handled, as the error for which worker `worker` ends. One that says that the
// process has no memory, thread or descriptor left becomes an error of kind overloaded, which tells
// the limit and how to raise it. Call it inside a catch block.
[[nodiscard]] Error error_of_failure(const std::string& worker);

// Whether this process can open as many descriptors more as a worker must have at the least: its
// own, two for each of the `peers` that it is linked to from the start, and those of the store if
// it serves that. The error (overloaded) tells the limit and how many are needed.
[[nodiscard]] Status check_descriptors(const Placement& placement, size_t peers);

}  // namespace rehearsal::real
