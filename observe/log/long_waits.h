#pragma once

#include <map>
#include <vector>

#include "core/base/wait_view.h"
#include "observe/log/log.h"

namespace rehearsal::observe {

// Tells of each execution that has waited for long in a primitive of the program's own, once each
// time: at level warn if it waits for a mutex that another one holds, else at level info, since
// those who wait for work may wait as long as they like.
//
//   … level=warning worker=ps event=waits_long what=take in="boost::fibers::mutex::lock(), held by
//     put" for_seconds=5
//
// On the strand; the log outlives it.
class LongWaits {
 public:
  // `after` zero: nothing is told.
  LongWaits(Log& log, Duration after) : log_(log), after_(after) {}

  // To be called every now and then, with all that wait now.
  void look(const std::vector<WaitViews::Stack>& stacks);

 private:
  struct Seen {
    Duration waited{};
    bool told = false;
  };

  Log& log_;
  const Duration after_;
  std::map<Hash128, Seen> seen_;  // at the last look, by the paths of the executions
};

}  // namespace rehearsal::observe
