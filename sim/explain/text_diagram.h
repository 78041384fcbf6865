#pragma once

#include <cstddef>
#include <string>

#include "sim/explain/story.h"

namespace rehearsal::sim {

struct DiagramSize {
  size_t lines = 40;
  size_t columns = 100;
};

// A space-time diagram as text: a column for each worker, time running down, arrows for messages,
// × for a connection that breaks, # for a crash, ^ for a restart, ! where it fails and where
// something is thrown, A and B for the critical pair; the shutdown is one line. The arrows of a
// backward pass are made of letters of their own (═ gradients, · marks, ~ waves). Below it stand
// where it was thrown, with the places in the source, and the critical pair. Of a long run it shows
// the moments that weigh most (story.h) and says how many it leaves out. At most eight workers are
// shown. Never larger than `size`; each line has its end.
[[nodiscard]] std::string text_diagram(const Chronicle& chronicle, const Subject& subject,
                                       DiagramSize size = {});

}  // namespace rehearsal::sim
