// Explorations of a scenario, as the command line asks for them; see sim/explore/explorer.h.
#pragma once

#include <functional>

#include "command_line/backends.h"

namespace rehearsal::command_line {

[[nodiscard]] ExploreOutcome explore_all(const RunSettings& settings,
                                         const std::function<bool(const ExploreProgress&)>& go_on);

// The run that these settings' schedule says, which `check_schedule` let pass: it throws
// std::invalid_argument if the text is no schedule of this scenario's workers.
[[nodiscard]] RunOutcome run_one_schedule(const RunSettings& settings);
void check_schedule(const RunSettings& settings);

// Throws the same if one of `only_faults` is none of this scenario's workers.
void check_faults(const RunSettings& settings);

}  // namespace rehearsal::command_line
