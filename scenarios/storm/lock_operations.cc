#include <chrono>
#include <exception>
#include <stdexcept>

#include "scenarios/storm/actor.h"

// An actor's operations with what functions take and give back, also when nobody waits for them.
namespace rehearsal::storm {
namespace {

using std::chrono::seconds;

constexpr auto kCleanUpTime = seconds(300);
constexpr auto kPause = seconds(5);  // between two looks at a lock
constexpr int kLooksMax = 120;       // for longer than a clean-up may take

// Takes a lock, and gives it back. A worker that is lost with the lock ends it.
class Held {
 public:
  Held(CallContext& context, const RRef<Lock>& lock) : context_(context), lock_(lock) {
    const Shield shield = context_.shielded(kCleanUpTime);
    lock_.rpc_sync(&Lock::take);
  }
  ~Held() {
    try {
      give();
    } catch (const RpcError&) {
    }
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  // While an exception leaves the function its calls are shielded unasked.
  void give() {
    if (std::uncaught_exceptions() > 0) {
      lock_.rpc_sync(&Lock::give);
      return;
    }
    const Shield shield = context_.shielded(kCleanUpTime);
    lock_.rpc_sync(&Lock::give);
  }

  CallContext& context_;
  const RRef<Lock> lock_;
};

}  // namespace

int64_t travel_locked(CallContext& context, const RRef<Lock>& lock, const Journey& journey) {
  const Held held(context, lock);
  const int64_t travelled = travel(context, journey);
  if (journey.word % 2 == 1) throw std::runtime_error("the way was locked");
  return travelled;
}

int64_t taken_there(CallContext& context, const RRef<Lock>& lock) {
  return context.rpc_sync(lock, &Lock::taken);
}

// The call is given up at any moment, or not at all; then its lock is soon free.
void Actor::leave_locked(Dice& dice) {
  const RRef<Lock> lock = worker_.remote<Lock>(anybody(dice));
  const WorkerId to = anybody(dice);
  const RRef<Counter> life = worker_.remote<Counter>(to, int64_t{0});
  const Journey way = journey(dice, 2);
  const auto patience = std::chrono::microseconds(1 + dice.draw(20000));
  const bool in_time = dice.happens(40);
  const Calls calls = worker_.with_timeout(in_time ? Timeout(patience) : Timeout::never());
  const Future<int64_t> held = calls.rpc_async(to, &travel_locked, lock, way);
  if (!in_time && dice.happens(70)) {
    worker_.sleep(patience);
    held.cancel();
  }
  if (const Result<int64_t> result = held.result(); !result.ok()) {
    using enum ErrorKind;
    const ErrorKind kind = result.error().kind;
    if (kind != timeout && kind != cancelled && kind != remote_exception)
      throw RpcError(result.error());
  }
  await_given(lock, life, to);
}

// It was taken at `to`, in the life that `life` belongs to.
void Actor::await_given(const RRef<Lock>& lock, const RRef<Counter>& life, WorkerId to) {
  for (int looks = 0; lock.rpc_sync(&Lock::taken) != 0; ++looks) {
    worker_.sleep(kPause);
    if (looks < kLooksMax) continue;
    // A worker that took it and died, or has lost the lock's worker, cannot give it back: these say
    // so.
    life.rpc_sync(&Counter::total);
    worker_.rpc_sync(to, &taken_there, lock);
    throw WrongResult("a lock was not given back by whoever had it");
  }
  expect("a lock that was given back", 0, 0);
}

// A lock that is taken too late for whoever asked for the lease would be nobody's.
Lease::Lease(const WorkerAccess& here, const RRef<Lock>& lock)
    : lock_(lock.with_timeout(kCleanUpTime)) {
  const Shield shield = here.shielded(kCleanUpTime);
  lock_.rpc_sync(&Lock::take);
}

Lease::~Lease() {
  if (!lock_.valid()) return;
  try {
    lock_.rpc_sync(&Lock::give);
  } catch (const RpcError&) {
  }
}

// A value that is held here or elsewhere ends, or what a continuation holds, which runs or does
// not.
void Actor::let_a_lease_end(Dice& dice) {
  const RRef<Lock> lock = worker_.remote<Lock>(anybody(dice));
  const bool is_captured = dice.happens(50);
  const WorkerId to = is_captured ? worker_.id() : anybody(dice);
  const RRef<Counter> life = worker_.remote<Counter>(to, int64_t{0});
  const Journey way = journey(dice, 2);
  if (is_captured) {
    const Future<int64_t> travelled = worker_.rpc_async(anybody(dice), &travel, way);
    travelled.then([lease = Lease(worker_, lock)](int64_t) {});
    if (dice.happens(30)) travelled.cancel();
  } else {
    const RRef<Lease> lease = worker_.remote<Lease>(to, lock);
    worker_.rpc_sync(anybody(dice), &travel, way);
  }
  await_given(lock, life, to);
}

}  // namespace rehearsal::storm
