#pragma once

#include <string>
#include <vector>

#include "core/base/execution.h"
#include "core/base/wait_view.h"

namespace rehearsal::sim {

// `state` in more words, where it is that the execution waits, as its node tells it: "waits for
// Model.push at server". `names`: of all workers.
[[nodiscard]] std::string state_of(const Execution& execution, std::string state,
                                   const WaitViews& waits, const std::vector<std::string>& names);

}  // namespace rehearsal::sim
