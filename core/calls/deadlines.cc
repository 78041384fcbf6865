#include "core/calls/deadlines.h"

#include <algorithm>

namespace rehearsal {

DeadlineId Deadlines::add(Instant when, Entry entry) {
  const DeadlineId id{when, next_number_++};
  spare_.add_last(entries_, id)->second = std::move(entry);
  arm();
  return id;
}

void Deadlines::remove(const DeadlineId& id) {
  if (id.number == 0) return;
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  const Task dropped = std::move(found->second.task);
  spare_.erase(entries_, found);
}

void Deadlines::clear() {
  entries_.clear();
  if (armed_) strand_.runtime().cancel(timer_);
  armed_ = false;
}

uint64_t Deadlines::loose_count() const {
  return static_cast<uint64_t>(std::count_if(entries_.begin(), entries_.end(),
                                             [](const auto& entry) { return entry.second.loose; }));
}

Duration Deadlines::pause_left(Duration at_least) const {
  const auto last = std::find_if(entries_.rbegin(), entries_.rend(), [at_least](const auto& entry) {
    return entry.second.pause.count() > 0 && entry.second.pause >= at_least;
  });
  return last == entries_.rend() ? Duration{} : std::max(time_until(last->first.when), Duration{});
}

// A timer that is too early costs one empty turn; one that is too late would be wrong.
void Deadlines::arm() {
  if (entries_.empty()) return;
  const Instant earliest = entries_.begin()->first.when;
  if (armed_ && armed_for_ <= earliest) return;
  if (armed_) strand_.runtime().cancel(timer_);
  armed_ = true;
  armed_for_ = earliest;
  timer_ = strand_.runtime().call_at(earliest, [this] { expire(); });
}

void Deadlines::expire() {
  armed_ = false;
  const Instant now = strand_.runtime().now();
  while (!entries_.empty() && entries_.begin()->first.when <= now) {
    Task task = std::move(entries_.begin()->second.task);
    spare_.erase(entries_, entries_.begin());
    task();
  }
  arm();
}

}  // namespace rehearsal
