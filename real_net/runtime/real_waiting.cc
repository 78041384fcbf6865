#include "core/base/check.h"
#include "real_net/runtime/real_runtime.h"

// How threads of a RealRuntime wait: who polls, who sleeps, what is done meanwhile.
namespace rehearsal::real {
namespace {

constexpr Duration kReliefTick = std::chrono::microseconds(500);

// How long whoever polls leaves timers that are due to the strand's holder before it looks again.
constexpr Duration kBesideHolder = std::chrono::microseconds(100);

std::atomic_ref<bool> woken(Waiter& waiter) { return std::atomic_ref<bool>(waiter.woken); }

}  // namespace

ParkOutcome RealRuntime::park(Waiter& waiter) {
  if (!may_park()) return ParkOutcome::would_park;
  ThreadRecord& me = threads_.current();
  if (me.running != nullptr) return park_fiber(*me.running, waiter);
  {
    const std::lock_guard lock(mutex_);
    if (ends_park(waiter)) return ParkOutcome::killed;
    if (woken(waiter)) return ParkOutcome::woken;
    waiter.slot = &me.parked;
    me.parked.waiter = &waiter;
  }
  bool killed = false;
  wait_here(me, [&] {
    killed = ends_park(waiter);
    if (!killed && !woken(waiter)) return false;
    me.parked.waiter = nullptr;
    return true;
  });
  return killed ? ParkOutcome::killed : ParkOutcome::woken;
}

ParkOutcome RealRuntime::park_fiber(FiberRecord& fiber, Waiter& waiter) {
  {
    const std::lock_guard lock(mutex_);
    if (ends_park(waiter)) return ParkOutcome::killed;
    if (woken(waiter)) return ParkOutcome::woken;
    waiter.slot = &fiber.parked;
    fiber.parked.waiter = &waiter;
  }
  fiber.fiber->suspend();
  return woken(waiter) ? ParkOutcome::woken : ParkOutcome::killed;
}

// Whether a kill has ended this park, or would.
bool RealRuntime::ends_park(const Waiter& waiter) const {
  return killed_ && waiter.at_kill == AtKill::ends;
}

void RealRuntime::wake(Waiter& waiter) {
  const std::lock_guard lock(mutex_);
  if (!waiter.by_code) go_on(waiter, strand_holder_->nudges);
}

bool RealRuntime::wake_by_code(Waiter& waiter) {
  Nudges nudges;
  Lock lock(mutex_);
  if (woken(waiter)) return false;
  waiter.by_code = true;
  go_on(waiter, nudges);
  unlock_and_carry_out(lock, nudges);
  return true;
}

// The parked stack may go on, and the Waiter be gone, as soon as `woken` is set and the lock is
// free, or even before: who parks next looks at `woken` under the lock.
void RealRuntime::go_on(Waiter& waiter, Nudges& nudges) {
  auto* parked = static_cast<Parked*>(waiter.slot);
  if (parked != nullptr) {
    parked->waiter = nullptr;
    if (parked->fiber != nullptr) parked->thread->runnable.push_back(parked->fiber);
    role_.notify(parked->thread->seat, nudges);
  }
  woken(waiter) = true;
}

// Returns when `done`, which is asked under the lock. Runs what else this thread has to do.
void RealRuntime::wait_here(ThreadRecord& me, UniqueFunction<bool()> done) {
  REHEARSAL_CHECK(!me.looks_again);
  Lock lock(mutex_);
  me.looks_again = true;
  for (;;) {
    me.seat.notified = false;
    if (done()) break;
    if (!do_other_work(me, me.inline_bodies, lock)) wait_for_news(me, lock);
  }
  me.looks_again = false;
  Nudges nudges;
  if (!me.inline_bodies.empty()) role_.notify(relief_seat_, nudges);
  leave_bodies(me);
  role_.leave(nudges);
  unlock_and_carry_out(lock, nudges);
}

// Runs one execution or one of `bodies`; false if there is none. Releases the lock meanwhile.
bool RealRuntime::do_other_work(ThreadRecord& me, std::deque<InlineBody>& bodies, Lock& lock) {
  Nudges nudges;
  if (!me.runnable.empty()) {
    FiberRecord& fiber = *me.runnable.front();
    me.runnable.pop_front();
    role_.leave(nudges);
    unlock_and_carry_out(lock, nudges);
    resume_fiber(me, fiber);
  } else if (!bodies.empty()) {
    InlineBody body = std::move(bodies.front());
    bodies.pop_front();
    role_.pause(nudges);
    unlock_and_carry_out(lock, nudges);
    run_inline(me, std::move(body));
  } else {
    return false;
  }
  lock.lock();
  return true;
}

void RealRuntime::wait_for_news(ThreadRecord& me, Lock& lock) {
  Nudges nudges;
  if (me.in_pool && me.live.empty()) {
    role_.leave(nudges);
    role_.rest(me.seat);
  } else if (role_.next(me.seat, nudges) == PollingRole::Step::poll) {
    return poll_turn(me, me.seat, lock);
  }
  unlock_and_carry_out(lock, nudges);
  me.seat.signal.wait();
  lock.lock();
  role_.awake(me.seat);
}

// Polls until anything came, for the network, the timers or this seat.
void RealRuntime::poll_turn(ThreadRecord& me, PollingRole::Seat& seat, Lock& lock) {
  const Duration spin_limit = may_spin(seat) ? spin_.next() : Duration::zero();
  lock.unlock();
  me.polling = true;
  bool slept = false;
  const bool found = spin(seat, now() + spin_limit);
  if (!found && !seat.notified) {
    slept = true;
    sleep_in_network(seat);
  }
  me.polling = false;
  lock.lock();
  if (spin_limit > Duration::zero() && (found || slept)) spin_.note(found);
  role_.end_turn(seat);
}

// Whether looking again and again can take nothing from whom it waits for: a processor is left for
// it beside the executions here, and for each worker of this machine.
bool RealRuntime::may_spin(const PollingRole::Seat& seat) const {
  return &seat != &relief_seat_ && processors_ >= 2 && computing_ < processors_ &&
         neighbours_.load(std::memory_order_relaxed) < processors_;
}

// The kernel may have placed the other side on this very processor: between two looks it has a
// turn.
bool RealRuntime::spin(const PollingRole::Seat& seat, Instant until) {
  for (;;) {
    if (look(Duration::zero())) return true;
    if (seat.notified || now() >= until) return false;
    yields_.fetch_add(1, std::memory_order_relaxed);
    std::this_thread::yield();
  }
}

void RealRuntime::sleep_in_network(PollingRole::Seat& seat) {
  {
    const std::lock_guard lock(mutex_);
    if (!role_.begin_sleep(seat)) return;
  }
  sleeps_.fetch_add(1, std::memory_order_relaxed);
  look(Duration::max());
  const std::lock_guard lock(mutex_);
  role_.end_sleep();
}

// Waits for the network, `limit` at most and never beyond the first timer.
bool RealRuntime::look(Duration limit) {
  const Instant earliest = timers_.earliest();
  if (earliest != Instant::max()) {
    const Duration left = earliest - now();
    // Entering the strand runs the timers that are due. Its holder does so, too, once it comes to
    // it: it may have no processor for a while.
    if (left <= Duration::zero() && strand_.take_if_free()) return run_held_strand(), true;
    limit = std::min(limit, left <= Duration::zero() ? kBesideHolder : left);
  }
  return poller_.wait(limit);
}

// Polls while no other thread does, and runs inline bodies that nobody else has time for.
void RealRuntime::relief_loop() {
  using enum PollingRole::Step;
  set_up_thread();
  pthread_setname_np(pthread_self(), "relief");
  ThreadRecord& me = threads_.current();
  me.comes_again = true;
  Lock lock(mutex_);
  me.looks_again = true;
  for (;;) {
    relief_seat_.notified = false;
    if (stopping_) break;
    if (do_other_work(me, me.inline_bodies, lock)) continue;
    if (do_other_work(me, left_bodies_, lock)) continue;
    Nudges nudges;
    const PollingRole::Step step = role_.next_of_relief(nudges);
    if (step == poll) {
      poll_turn(me, relief_seat_, lock);
      continue;
    }
    unlock_and_carry_out(lock, nudges);
    if (step == dormant) {
      relief_seat_.signal.wait();
    } else {
      relief_seat_.signal.wait_for(kReliefTick);
    }
    lock.lock();
  }
  me.looks_again = false;
  leave_bodies(me);
}

// To whoever runs such next. Under the lock.
void RealRuntime::leave_bodies(ThreadRecord& me) {
  for (InlineBody& body : me.inline_bodies) left_bodies_.push_back(std::move(body));
  me.inline_bodies.clear();
}

void RealRuntime::unlock_and_carry_out(Lock& lock, Nudges& nudges) {
  lock.unlock();
  if (!nudges.empty()) carry_out(nudges);
}

void RealRuntime::carry_out(Nudges& nudges) {
  for (PollingRole::Seat* seat : nudges.signals) {
    wakes_.fetch_add(1, std::memory_order_relaxed);
    seat->signal.set();
  }
  nudges.signals.clear();
  if (std::exchange(nudges.interrupt, false)) poller_.interrupt();
}

}  // namespace rehearsal::real
