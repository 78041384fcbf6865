#pragma once

#include <string>

#include "observe/metrics.h"

namespace rehearsal::observe {

// A server's header Content-Type for the text below.
inline constexpr const char* kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

// The counts in the text format of Prometheus, version 0.0.4, each series with the label `worker`.
// The same snapshot gives the same text. Times are in seconds.
[[nodiscard]] std::string metrics_text(const MetricsSnapshot& snapshot);

}  // namespace rehearsal::observe
