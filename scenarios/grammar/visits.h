#pragma once

#include <cstdint>
#include <set>

namespace rehearsal::grammar {

// A worker's state: the things that others have had done here.
struct Visits {
  int64_t begun = 0;         // so often its main has had another worker work in its place
  int64_t ended = 0;         // so often a function has ended that worked here in another's
  std::set<int64_t> missed;  // the visitors that found their cells lost when they died here
};

}  // namespace rehearsal::grammar
