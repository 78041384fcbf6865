#include "real_net/runtime/timer_table.h"

namespace rehearsal::real {

TimerId TimerTable::add(Instant when, Task task) {
  const uint64_t id = next_id_++;
  tasks_.emplace(std::pair(when, id), std::move(task));
  instants_.emplace(id, when);
  note_earliest();
  return TimerId{id};
}

Task TimerTable::cancel(TimerId timer) {
  const auto found = instants_.find(timer.value);
  if (found == instants_.end()) return nullptr;
  auto node = tasks_.extract({found->second, timer.value});
  REHEARSAL_CHECK(!node.empty());
  instants_.erase(found);
  note_earliest();
  return std::move(node.mapped());
}

Task TimerTable::take_due(Instant now) {
  if (tasks_.empty() || tasks_.begin()->first.first > now) return nullptr;
  auto node = tasks_.extract(tasks_.begin());
  instants_.erase(node.key().second);
  note_earliest();
  return std::move(node.mapped());
}

std::vector<Task> TimerTable::clear() {
  std::vector<Task> tasks;
  for (auto& [key, task] : tasks_) tasks.push_back(std::move(task));
  tasks_.clear();
  instants_.clear();
  note_earliest();
  return tasks;
}

void TimerTable::note_earliest() {
  const Instant earliest = tasks_.empty() ? Instant::max() : tasks_.begin()->first.first;
  earliest_.store(earliest.time_since_epoch().count());
}

}  // namespace rehearsal::real
