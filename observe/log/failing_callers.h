#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/failing_calls.h"
#include "observe/log/log.h"

namespace rehearsal::observe {

// Tells, at level warn, of a function that this worker calls again and again although each call
// fails at once, and why; once, until a call to that worker has a value:
//
//   … level=warning worker=trainer event=calls_fail function=one peer=ps times=1000
//     error=peer_lost why="worker 'ps' was lost: …" hint="…"
//
// On the strand, as every Trace; the log outlives it.
class FailingCallers final : public Trace {
 public:
  // `names`: of all workers, in rank order.
  FailingCallers(Log& log, std::vector<std::string> names) : log_(log), names_(std::move(names)) {}

  void on_event(const Event& event) override;

  // So many are told of.
  static constexpr uint64_t kTimes = 1000;

 private:
  [[nodiscard]] std::string name_of(WorkerId worker) const;
  void tell(const FailingCalls::Streak& streak);

  Log& log_;
  const std::vector<std::string> names_;
  FailingCalls calls_{std::chrono::milliseconds(100)};
  std::map<WorkerId, std::string> lost_;  // why
};

}  // namespace rehearsal::observe
