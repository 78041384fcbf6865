#pragma once

#include <cstdint>
#include <optional>

#include "core/base/result.h"
#include "real_net/worker/placement.h"

namespace rehearsal::real {

// How many threads run user functions (WorkerOptions::num_worker_threads): what was given, else
// what the environment says, REHEARSAL_WORKER_THREADS, else as many as there are cores, two at
// least. The error (bad_arguments) is one line.
[[nodiscard]] Result<uint32_t> choose_worker_threads(std::optional<uint32_t> given,
                                                     const Environment& environment);

}  // namespace rehearsal::real
