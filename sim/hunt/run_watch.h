#pragma once

#include <memory>
#include <string>

#include "core/base/time.h"

namespace rehearsal::sim {

struct RunPulse;

// Held by a Cluster around everything that it runs on the calling thread: shows the run to those
// who tell of the end of the process, and ends it if the run hangs: a function locks a mutex that
// another one holds while it waits for a call, or never comes out of a loop.
//
// A timer of the machine interrupts the thread now and then. When several interruptions in a row
// see the same event running, for `watchdog` in all, the process ends as CrashReport says, or, if
// there is none, with `reproduction`. In a debugger and under valgrind it says nothing; a process
// that was stopped begins anew to count; with sanitizers it takes ten times as long. No thread is
// made, and nothing that the run could notice.
class RunWatch {
 public:
  // `watchdog` zero: the run is shown, but not timed.
  RunWatch(std::shared_ptr<const RunPulse> pulse, Duration watchdog,
           const std::string& reproduction);
  ~RunWatch();
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;

 private:
  const std::shared_ptr<const RunPulse> pulse_;
  const RunPulse* const shown_before_;
  bool timed_ = false;
};

}  // namespace rehearsal::sim
