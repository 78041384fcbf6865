#pragma once

#include <algorithm>

#include "core/base/hash.h"
#include "core/base/time.h"

namespace rehearsal::real {

struct BackOffOptions {
  Duration min = std::chrono::milliseconds(10);
  Duration max = std::chrono::seconds(1);
};

// How long to wait before the next attempt after `failures` of them: doubles up to a limit, and is
// spread over its upper half by `key`, so that many workers do not come at once.
[[nodiscard]] inline Duration back_off(const BackOffOptions& options, uint64_t failures,
                                       uint64_t key) {
  const Duration doubled = options.min * (int64_t{1} << std::min<uint64_t>(failures, 20));
  const Duration limit = std::min(doubled, options.max);
  const uint64_t half = static_cast<uint64_t>(limit.count()) / 2;
  return limit - Duration(static_cast<int64_t>(mix(key, failures) % (half + 1)));
}

}  // namespace rehearsal::real
