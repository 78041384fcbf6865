#include "sim/explain/futile_tries.h"

#include <utility>

namespace rehearsal::sim {
namespace {

// The events of a try that gets no further.
constexpr EventKinds kBegins{EventKind::execution_parked, EventKind::api_call};
constexpr EventKinds kEnds{EventKind::call_completed, EventKind::execution_started,
                           EventKind::execution_resumed, EventKind::execution_ended};

}  // namespace

bool FutileTries::is_futile(const net_fake::LifeId& life) const {
  const auto found = lives_.find(life);
  return found != lives_.end() && found->second.futile();
}

void FutileTries::note(Tries& tries, const Observation& seen) {
  const Event& event = seen.event;
  const FailingCalls::Streak* const failed = tries.calls.on_event(event, seen.when);
  if (event.kind == EventKind::call_completed)
    tries.fails = failed != nullptr && failed->last_at_once && failed->at_once > kTold;
  if (event.kind == EventKind::frame_sent) tries.fails = false;
  const bool is_over =
      event.kind == EventKind::execution_resumed && tries.parked && tries.parked_at == seen.when;
  if (event.kind != EventKind::execution_parked) tries.passes = is_over ? tries.passes + 1 : 0;
  tries.parked = event.kind == EventKind::execution_parked;
  tries.parked_at = seen.when;
}

std::vector<Entry> FutileTries::take(const Observation& seen, Entry entry) {
  Tries& tries = lives_[seen.life];
  note(tries, seen);
  const EventKind kind = seen.event.kind;
  if (tries.futile() && kBegins.has(kind)) {
    tries.held.push_back(std::move(entry));
    return {};
  }
  if (tries.futile() && kEnds.has(kind)) {
    tries.held.clear();
    return {};
  }
  std::vector<Entry> entries = std::exchange(tries.held, {});
  entries.push_back(std::move(entry));
  return entries;
}

}  // namespace rehearsal::sim
