#include "core/base/failing_calls.h"

#include <algorithm>

namespace rehearsal {
namespace {

constexpr size_t kStreaksMax = 64;  // the oldest give way

}  // namespace

const FailingCalls::Streak* FailingCalls::on_event(const Event& event, Instant when) {
  switch (event.kind) {
    case EventKind::api_call:
      called_ = event.id;
      called_at_ = when;
      function_ = event.text;
      sent_ = false;
      return nullptr;
    case EventKind::frame_sent:
      sent_ |= event.id == called_;
      return nullptr;
    case EventKind::call_completed:
      if (event.number > 0) return complete(event, when);
      if (!streaks_.empty()) forget(event);
      return nullptr;
    default:
      return nullptr;
  }
}

// Of a call that is not the last one nobody knows the function any more: a loop that waits for each
// of its calls has no such.
const FailingCalls::Streak* FailingCalls::complete(const Event& completed, Instant when) {
  if (completed.id != called_) return nullptr;
  Streak& streak = streak_to(completed.peer);
  const bool at_once = !sent_ && when - called_at_ <= moment_;
  // The call that was under way when its peer was lost belongs to what came before.
  if (at_once && streak.at_once == 0) streak.count = streak.forgiven = 0;
  if (streak.count == 0) streak.since = when;
  if (streak.last != when) streak.in_instant = 0;
  ++streak.count;
  if (at_once) {
    ++streak.at_once;
    ++streak.in_instant;
  }
  streak.path = completed.id.path;
  streak.last = when;
  streak.last_at_once = at_once;
  streak.kind = static_cast<ErrorKind>(completed.number - 1);
  return &streak;
}

void FailingCalls::forgive() {
  for (Streak& streak : streaks_) {
    streak.forgiven = streak.count;
    streak.forgiven_at_once = streak.at_once;
  }
}

void FailingCalls::forget(const Event& completed) {
  std::erase_if(streaks_, [&completed](const Streak& streak) {
    return streak.peer == completed.peer || streak.path == completed.id.path;
  });
}

FailingCalls::Streak& FailingCalls::streak_to(WorkerId peer) {
  const auto known = std::find_if(streaks_.begin(), streaks_.end(), [&](const Streak& streak) {
    return streak.peer == peer && streak.function == function_;
  });
  if (known != streaks_.end()) return *known;
  if (streaks_.size() == kStreaksMax) streaks_.erase(streaks_.begin());
  Streak& fresh = streaks_.emplace_back();
  fresh.function = function_;
  fresh.peer = peer;
  return fresh;
}

}  // namespace rehearsal
