#pragma once

#include <string>

#include "core/base/result.h"
#include "core/base/time.h"
#include "real_net/worker/placement.h"

namespace rehearsal::real {

// How long a thread that waits polls without sleeping (RuntimeOptions::spin_max). `text` is a time
// of at most 100ms, or "0"; an empty one comes from the environment, REHEARSAL_SPIN, else it is the
// default. The error (bad_arguments) is one line.
[[nodiscard]] Result<Duration> choose_spin(const std::string& text, const Environment& environment);

}  // namespace rehearsal::real
