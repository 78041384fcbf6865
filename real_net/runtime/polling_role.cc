#include "real_net/runtime/polling_role.h"

#include <algorithm>

#include "core/base/check.h"

namespace rehearsal::real {

PollingRole::Step PollingRole::next(Seat& seat, Nudges& nudges) {
  REHEARSAL_CHECK(!seat.asleep);
  if (poller_ == nullptr) {
    poller_ = &seat;
    return Step::poll;
  }
  REHEARSAL_CHECK(poller_ != &seat);
  if (poller_ == &relief_ && !relief_asked_) {
    relief_asked_ = true;
    notify(relief_, nudges);
  }
  seat.asleep = true;
  sleepers_.push_back(&seat);
  return Step::sleep;
}

void PollingRole::awake(Seat& seat) {
  seat.asleep = false;
  std::erase(sleepers_, &seat);
}

bool PollingRole::begin_sleep(Seat& seat) {
  REHEARSAL_CHECK(poller_ == &seat);
  if (seat.notified || timers_changed_) return false;
  poller_sleeps_ = true;
  return true;
}

void PollingRole::end_sleep() { poller_sleeps_ = false; }

void PollingRole::end_turn(Seat& seat) {
  REHEARSAL_CHECK(poller_ == &seat);
  poller_ = nullptr;
  timers_changed_ = false;
  // The relief thread looks whether others poll: its own turns do not count.
  if (&seat != &relief_) ++turns_;
}

void PollingRole::leave(Nudges& nudges) {
  if (poller_ != nullptr) return;
  if (sleepers_.empty()) return pause(nudges);
  nudges.signals.push_back(sleepers_.back());
}

void PollingRole::pause(Nudges& nudges) {
  if (!relief_dormant_) return;
  relief_dormant_ = false;
  nudges.signals.push_back(&relief_);
}

void PollingRole::notify(Seat& seat, Nudges& nudges) {
  if (seat.notified.exchange(true)) return;
  if (&seat == poller_) {
    interrupt_sleep(nudges);
  } else if (seat.asleep || &seat == &relief_) {
    nudges.signals.push_back(&seat);
  }
}

void PollingRole::notify_poller(Nudges& nudges) {
  if (poller_ == nullptr) return;
  timers_changed_ = true;
  interrupt_sleep(nudges);
}

void PollingRole::interrupt_sleep(Nudges& nudges) {
  if (!poller_sleeps_) return;
  poller_sleeps_ = false;
  nudges.interrupt = true;
}

PollingRole::Step PollingRole::next_of_relief(Nudges& nudges) {
  relief_dormant_ = false;
  if (relief_asked_) {
    relief_asked_ = false;
    leave(nudges);
    turns_at_tick_ = turns_;
    return Step::tick;
  }
  const bool quiet = turns_ == turns_at_tick_;
  turns_at_tick_ = turns_;
  if (!quiet) return Step::tick;
  if (poller_ == nullptr) {
    poller_ = &relief_;
    return Step::poll;
  }
  if (!poller_sleeps_) return Step::tick;
  relief_dormant_ = true;
  return Step::dormant;
}

}  // namespace rehearsal::real
