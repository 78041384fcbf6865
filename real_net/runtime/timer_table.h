#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/runtime.h"

namespace rehearsal::real {

// The timers of one node. Belongs to its strand; only `earliest` may be asked from elsewhere.
class TimerTable {
 public:
  TimerId add(Instant when, Task task);

  // The task of this timer, which will not run; empty if it has run. The caller destroys it off
  // the strand.
  [[nodiscard]] Task cancel(TimerId timer);

  // The first task that is due at `now`; empty if none is. Ties go to the timer made first.
  [[nodiscard]] Task take_due(Instant now);

  // The tasks of all timers, none of which will run.
  [[nodiscard]] std::vector<Task> clear();

  // When the first timer is due; Instant::max() if there is none. Any thread.
  [[nodiscard]] Instant earliest() const { return Instant(Duration(earliest_.load())); }

  [[nodiscard]] size_t size() const { return tasks_.size(); }

 private:
  void note_earliest();

  uint64_t next_id_ = 1;
  std::map<std::pair<Instant, uint64_t>, Task> tasks_;
  std::unordered_map<uint64_t, Instant> instants_;  // by timer
  std::atomic<Duration::rep> earliest_{Instant::max().time_since_epoch().count()};
};

}  // namespace rehearsal::real
