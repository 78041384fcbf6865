#pragma once

#include <compare>
#include <cstdint>

#include "core/base/time.h"

namespace rehearsal {

// Names a deadline of the node; zero names none.
struct DeadlineId {
  Instant when{};
  uint64_t number = 0;
  auto operator<=>(const DeadlineId&) const = default;
};

}  // namespace rehearsal
