#pragma once

#include <optional>
#include <string>

#include "sim/values.h"

namespace rehearsal::sim {

// How the values break the invariant; nothing if they keep it.
[[nodiscard]] std::optional<std::string> contradiction(const NamedInvariant& invariant,
                                                       const Values& values);

}  // namespace rehearsal::sim
