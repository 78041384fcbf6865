#include "observe/log/failing_callers.h"

namespace rehearsal::observe {

void FailingCallers::on_event(const Event& event) {
  if (event.kind == EventKind::peer_fenced) lost_[event.peer] = event.text;
  const FailingCalls::Streak* const streak = calls_.on_event(event, event.when);
  if (streak != nullptr && streak->last_at_once && streak->at_once == kTimes) tell(*streak);
}

std::string FailingCallers::name_of(WorkerId worker) const {
  return worker.value < names_.size() ? names_[worker.value] : std::to_string(worker.value);
}

void FailingCallers::tell(const FailingCalls::Streak& streak) {
  LogFields fields = {{"function", streak.function},
                      {"peer", name_of(streak.peer)},
                      {"times", std::to_string(streak.at_once)},
                      {"error", std::string(rehearsal::name_of(streak.kind))}};
  if (const auto why = lost_.find(streak.peer); why != lost_.end())
    fields.emplace_back("why", why->second);
  fields.emplace_back("hint",
                      "each call failed at once: whoever tries again should wait in between, and "
                      "give up some time");
  log_.write(LogLevel::warn, "calls_fail", fields);
}

}  // namespace rehearsal::observe
