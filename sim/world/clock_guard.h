#pragma once

// A simulated run must not depend on when and where it runs. While a cluster runs, whoever of this
// program's own code reads the machine's clock, sleeps on it or starts a thread ends the process:
// on standard error stand the function, the call stack that led to it, and what to use instead.
//
// The linker does it: every executable that links this library is linked with `--wrap` for each
// such function, so that calls in its objects and in its static libraries come here first. Calls
// inside shared libraries do not, and so LibTorch, Boost and the C++ library are let through.
namespace rehearsal::sim {

// Held by a Cluster around everything that it runs on the calling thread. Nests.
class ClockGuard {
 public:
  ClockGuard();
  ~ClockGuard();
  ClockGuard(const ClockGuard&) = delete;
  ClockGuard& operator=(const ClockGuard&) = delete;
};

// Lets the calling thread through while it lives, for what is shown to people and decides nothing:
// a progress line that is drawn ten times a second. Never held across a park.
class RealClockAllowed {
 public:
  RealClockAllowed();
  ~RealClockAllowed();
  RealClockAllowed(const RealClockAllowed&) = delete;
  RealClockAllowed& operator=(const RealClockAllowed&) = delete;
};

}  // namespace rehearsal::sim
