#pragma once

#include <optional>
#include <string_view>

#include "sim/cluster_options.h"

// The words for levels of faults and for restarts, in flags, run files and JSON.
namespace rehearsal::sim {

[[nodiscard]] std::string_view name_of(FaultLevel level);
[[nodiscard]] std::string_view name_of(Restart restart);

// Nothing if there is none of that name.
[[nodiscard]] std::optional<FaultLevel> fault_level_named(std::string_view name);
[[nodiscard]] std::optional<Restart> restart_named(std::string_view name);

}  // namespace rehearsal::sim
