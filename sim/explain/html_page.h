#pragma once

#include <string>

#include "sim/explain/story.h"

namespace rehearsal::sim {

// The run as one HTML file that needs nothing else, no network and no server: a space-time diagram
// to scroll and zoom, with every event; a click or the keyboard selects one and shows its message,
// ids, tables, causes, what it led to and where in the program's source it comes from. It opens at
// the critical pair or, without one, where the run failed; of a failure with the events that matter
// most, and the shutdown folded. Filters by worker, kind and text; light and dark as the
// reader's system is. The page draws only what is visible: tens of thousands of events are no load.
[[nodiscard]] std::string html_page(const Chronicle& chronicle, const Subject& subject);

}  // namespace rehearsal::sim
