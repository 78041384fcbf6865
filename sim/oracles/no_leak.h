#pragma once

#include <string>

#include "core/node/node.h"

namespace rehearsal::sim {

// Lists what a worker that shut down in good order still held when its node ended, and should not
// have: "1 timers, 2 contexts"; empty if nothing. `dynamic`: its group is. `lied_to`: one of the
// others was mad.
[[nodiscard]] std::string left_at_end(const NodeCensus& census, bool dynamic, bool lied_to = false);

}  // namespace rehearsal::sim
