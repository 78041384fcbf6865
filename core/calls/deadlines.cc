#include "core/calls/deadlines.h"

namespace rehearsal {

DeadlineId Deadlines::add(Instant when, Task task) {
  const DeadlineId id{when, next_number_++};
  spare_.add_last(tasks_, id)->second = std::move(task);
  arm();
  return id;
}

void Deadlines::remove(const DeadlineId& id) {
  if (id.number == 0) return;
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return;
  const Task dropped = std::move(found->second);
  spare_.erase(tasks_, found);
}

void Deadlines::clear() {
  tasks_.clear();
  if (armed_) strand_.runtime().cancel(timer_);
  armed_ = false;
}

// A timer that is too early costs one empty turn; one that is too late would be wrong.
void Deadlines::arm() {
  if (tasks_.empty()) return;
  const Instant earliest = tasks_.begin()->first.when;
  if (armed_ && armed_for_ <= earliest) return;
  if (armed_) strand_.runtime().cancel(timer_);
  armed_ = true;
  armed_for_ = earliest;
  timer_ = strand_.runtime().call_at(earliest, [this] { expire(); });
}

void Deadlines::expire() {
  armed_ = false;
  const Instant now = strand_.runtime().now();
  while (!tasks_.empty() && tasks_.begin()->first.when <= now) {
    Task task = std::move(tasks_.begin()->second);
    spare_.erase(tasks_, tasks_.begin());
    task();
  }
  arm();
}

}  // namespace rehearsal
