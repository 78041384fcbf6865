#include "observe/log/slow_executions.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace rehearsal::observe {
namespace {

constexpr int kMainIsSlower = 12;

}  // namespace

void SlowExecutions::on_event(const Event& event) {
  if (after_ <= Duration::zero()) return;
  switch (event.kind) {
    case EventKind::execution_started:
    case EventKind::execution_resumed:
      if (const auto found = holding_.find(event.id); found != holding_.end())
        found->second.waits = false;
      running_.insert_or_assign(event.id, Running{std::string(event.text), std::nullopt, false});
      return;
    case EventKind::execution_parked:
      end(event.id);
      return event.number > 0 ? begin_to_hold(event) : end_to_hold(event.id);
    case EventKind::execution_ended:
      end(event.id);
      return end_to_hold(event.id);
    default:
      return;
  }
}

void SlowExecutions::end(const CausalId& id) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  const Running& running = found->second;
  if (running.told)
    log_.write(LogLevel::warn, "ran_long",
               {{"what", running.what}, {"for_seconds", seconds_text(looked_ - *running.seen)}});
  running_.erase(found);
}

void SlowExecutions::begin_to_hold(const Event& parked) {
  const auto [held, is_new] = holding_.try_emplace(parked.id);
  held->second.waits = true;
  if (!is_new) return;
  held->second.what = parked.text;
  held->second.object = parked.value;
}

void SlowExecutions::end_to_hold(const CausalId& id) {
  const auto found = holding_.find(id);
  if (found == holding_.end()) return;
  const Holding& held = found->second;
  if (held.told)
    log_.write(LogLevel::warn, "held_long",
               {{"what", held.what},
                {"object", held.object},
                {"for_seconds", seconds_text(looked_ - *held.seen)}});
  holding_.erase(found);
}

// One that runs may have left its monitor, and is told of as such.
void SlowExecutions::look_at_monitors(Instant now) {
  std::vector<Holding*> slow;
  for (auto& [id, held] : holding_) {
    if (!held.seen) held.seen = now;
    if (held.waits && !held.told && now - *held.seen >= after_) slow.push_back(&held);
  }
  std::sort(slow.begin(), slow.end(), [](const Holding* one, const Holding* other) {
    return std::pair(*one->seen, one->what) < std::pair(*other->seen, other->what);
  });
  for (Holding* const held : slow) {
    held->told = true;
    log_.write(LogLevel::warn, "holds_long",
               {{"what", held->what},
                {"object", held->object},
                {"for_seconds", seconds_text(now - *held->seen)},
                {"hint", "it waits while no other function gets at the object"}});
  }
}

void SlowExecutions::look(Instant now) {
  looked_ = now;
  look_at_monitors(now);
  std::vector<Running*> slow;
  for (auto& [id, running] : running_) {
    if (!running.seen) running.seen = now;
    const Duration limit = running.what == main_ ? after_ * kMainIsSlower : after_;
    if (!running.told && now - *running.seen >= limit) slow.push_back(&running);
  }
  std::sort(slow.begin(), slow.end(), [](const Running* one, const Running* other) {
    return std::pair(*one->seen, one->what) < std::pair(*other->seen, other->what);
  });
  for (Running* const running : slow) {
    running->told = true;
    log_.write(LogLevel::warn, "runs_long",
               {{"what", running->what},
                {"for_seconds", seconds_text(now - *running->seen)},
                {"hint",
                 "it has not waited for anything: it computes, loops, or waits for a lock "
                 "that another function holds across a call"}});
  }
}

uint64_t SlowExecutions::count() const {
  const auto told = [](const auto& table) {
    return std::ranges::count_if(table, [](const auto& entry) { return entry.second.told; });
  };
  return static_cast<uint64_t>(told(running_) + told(holding_));
}

}  // namespace rehearsal::observe
