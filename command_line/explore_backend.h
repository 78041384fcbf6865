// Explorations of a scenario, as the command line asks for them; see sim/explore/explorer.h.
#pragma once

#include <functional>
#include <string>

#include "command_line/backends.h"

namespace rehearsal::command_line {

[[nodiscard]] ExploreOutcome explore_all(const RunSettings& settings,
                                         const std::function<bool(const ExploreProgress&)>& go_on);

// Throws std::invalid_argument if the text is no schedule of this scenario's workers.
[[nodiscard]] RunOutcome run_one_schedule(const RunSettings& settings, const std::string& schedule);

}  // namespace rehearsal::command_line
