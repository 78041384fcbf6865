#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/fibers/fiber.h"
#include "real_net/runtime/polling_role.h"
#include "real_net/runtime/strand_queue.h"

// Post, park, wake and the polling role under the interleavings that 10,000 seeds draw. The logic
// is the product's (PollingRole, StrandQueue); threads, signals, the network and time are the
// model's. Each access to something shared is followed by a yield, where any thread may go on.
namespace rehearsal::real {
namespace {

using Nudges = PollingRole::Nudges;
using Seat = PollingRole::Seat;
using Step = PollingRole::Step;

struct Abandoned {};

// The step that may be left out, to see that the model would notice.
enum class Flaw : uint8_t { none, no_interrupt, no_signal_of_sleepers, release_without_look };

class Model {
 public:
  Model(uint64_t seed, Flaw flaw, fibers::StackPool& stacks)
      : seed_(seed), flaw_(flaw), stacks_(stacks), role_(relief_.seat) {}

  // Empty, or what went wrong.
  std::string run() {
    for (size_t i = 0; i < kWaiters; ++i)
      spawn("waiter", [this, i] { wait_again_and_again(waiters_[i]); });
    spawn("computer", [this] { compute(); });
    spawn("network", [this] { deliver(); });
    spawn("relief", [this] { relieve(); });
    while (problem_.empty() && !finished()) step();
    abandon();
    return problem_;
  }

 private:
  static constexpr size_t kWaiters = 3;
  static constexpr int kRounds = 4;
  static constexpr int kIdleTicksMax = 12;

  struct Thread {
    std::string name;
    std::unique_ptr<fibers::Fiber> fiber;
    std::function<bool()> blocked_until;  // empty: may go on
    bool times_out = false;               // may also go on without that
  };
  struct ModelSeat {
    Seat seat;
    bool signalled = false;  // the model's ThreadSignal
  };
  struct WaitingThread : ModelSeat {
    bool parked = false;  // the runtime's: registered as waiting
    bool woken = false;
    int left = kRounds;
  };
  // How a wait will end.
  enum class Ending : uint8_t { by_network, by_computer, by_timer, at_once };

  // Scheduling.

  void spawn(std::string name, std::function<void()> body) {
    auto thread = std::make_unique<Thread>();
    thread->name = name;
    thread->fiber = std::make_unique<fibers::Fiber>(name, stacks_.take().or_throw(), [body] {
      try {
        body();
      } catch (const Abandoned&) {
      }
    });
    threads_.push_back(std::move(thread));
  }

  uint64_t draw(uint64_t count) { return mix(seed_, ++draws_) % count; }

  void step() {
    std::vector<Thread*> able;
    std::vector<Thread*> timed;
    for (const auto& thread : threads_) {
      if (thread->fiber->done()) continue;
      if (!thread->blocked_until || thread->blocked_until()) {
        able.push_back(thread.get());
      } else if (thread->times_out) {
        timed.push_back(thread.get());
      }
    }
    // Time passes seldom while anybody can run, and by itself when nobody can.
    if (able.empty() || (!timed.empty() && draw(16) == 0)) able.swap(timed);
    if (able.empty()) return fail("everybody sleeps");
    idle_ticks_ =
        timed.empty() && able.size() == 1 && able[0]->name == "relief" ? idle_ticks_ + 1 : 0;
    if (idle_ticks_ > kIdleTicksMax) return fail("only the relief thread runs");
    if (++steps_ > 20'000) return fail("no end");
    present_ = able[draw(able.size())];
    present_->blocked_until = nullptr;
    present_->times_out = false;
    present_->fiber->resume();
  }

  void yield() {
    present_->fiber->suspend();
    if (abandoned_) throw Abandoned{};
  }
  void block(std::function<bool()> until, bool times_out) {
    present_->blocked_until = std::move(until);
    present_->times_out = times_out;
    yield();
  }

  void fail(const std::string& text) {
    if (problem_.empty()) problem_ = text + " (seed " + std::to_string(seed_) + ")";
  }
  bool finished() const {
    for (const WaitingThread& waiter : waiters_)
      if (waiter.left > 0) return false;
    return true;
  }
  void abandon() {
    abandoned_ = true;
    for (const auto& thread : threads_) {
      present_ = thread.get();
      if (!thread->fiber->started()) thread->fiber->discard();
      if (!thread->fiber->done()) thread->fiber->resume();
    }
  }

  // The runtime, as RealRuntime does it: a stretch without a yield is a locked section.

  void carry_out(Nudges& nudges) {
    for (Seat* seat : nudges.signals) {
      yield();
      if (flaw_ == Flaw::no_signal_of_sleepers && seat != &relief_.seat && draw(3) == 0) continue;
      model_of(seat).signalled = true;
    }
    nudges.signals.clear();
    if (std::exchange(nudges.interrupt, false)) {
      yield();
      if (flaw_ != Flaw::no_interrupt) interrupted_ = true;
    }
    yield();
  }
  ModelSeat& model_of(Seat* seat) {
    for (WaitingThread& waiter : waiters_)
      if (&waiter.seat == seat) return waiter;
    return relief_;
  }
  void sleep(ModelSeat& seat, bool times_out) {
    block([&seat] { return seat.signalled; }, times_out);
    seat.signalled = false;
  }

  void post(Task task) {
    const bool mine = strand_.queue(std::move(task));
    yield();
    if (!mine) return;
    do {
      Nudges nudges;
      strand_nudges_ = &nudges;
      std::vector<Task> batch;
      while (strand_.take_batch(batch)) {
        if (on_strand_++ != 0) fail("two threads on the strand");
        for (Task& next : batch) {
          next();
          yield();
        }
        --on_strand_;
        batch.clear();
        if (flaw_ == Flaw::release_without_look) break;
      }
      yield();
      strand_.release();
      yield();
      carry_out(nudges);
    } while (flaw_ != Flaw::release_without_look && strand_.take_again());
  }

  // On the strand.
  void wake(WaitingThread& waiter) {
    if (waiter.parked) {
      waiter.parked = false;
      role_.notify(waiter.seat, *strand_nudges_);
    }
    waiter.woken = true;
  }

  void park(WaitingThread& waiter) {
    if (waiter.woken) return;
    waiter.parked = true;
    yield();
    for (;;) {
      waiter.seat.notified = false;
      if (waiter.woken) break;
      Nudges nudges;
      if (role_.next(waiter.seat, nudges) == Step::poll) {
        yield();
        poll(waiter.seat);
        continue;
      }
      carry_out(nudges);
      sleep(waiter, /*times_out=*/false);
      role_.awake(waiter.seat);
    }
    Nudges nudges;
    role_.leave(nudges);
    carry_out(nudges);
  }

  void poll(Seat& seat) {
    if (pollers_++ != 0) fail("two threads poll");
    polling_ = present_;
    for (uint64_t looks = draw(3); looks > 0 && !look(); --looks) yield();
    if (!seat.notified) {
      yield();
      if (role_.begin_sleep(seat)) {
        yield();
        // A timer that is set later does not end this sleep.
        const bool timed = timers_set_ > 0;
        block([this] { return interrupted_ || !arrived_.empty(); }, timed);
        look();
        yield();
        role_.end_sleep();
      }
    }
    yield();
    polling_ = nullptr;
    --pollers_;
    role_.end_turn(seat);
  }

  // Takes what the network and the clock have; whether there was anything.
  bool look() {
    const bool came = interrupted_ || !arrived_.empty() || timers_set_ > 0;
    interrupted_ = false;
    while (!arrived_.empty()) {
      WaitingThread& waiter = *arrived_.front();
      arrived_.pop_front();
      post([this, &waiter] { wake(waiter); });
    }
    // Time is what the scheduler says: a timer may be due or not.
    if (timers_set_ > 0 && draw(2) == 0)
      post([this] {
        while (!timers_.empty()) {
          wake(*timers_.front());
          timers_.pop_front();
          --timers_set_;
        }
      });
    return came;
  }

  void relieve() {
    for (;;) {
      relief_.seat.notified = false;
      if (finished()) return;
      Nudges nudges;
      const Step next = role_.next_of_relief(nudges);
      if (next == Step::poll) {
        yield();
        poll(relief_.seat);
        continue;
      }
      carry_out(nudges);
      sleep(relief_, /*times_out=*/next == Step::tick);
    }
  }

  // The work of the program's threads.

  void wait_again_and_again(WaitingThread& waiter) {
    while (waiter.left > 0) {
      for (uint64_t work = draw(4); work > 0; --work) yield();
      waiter.woken = false;
      const auto ending = static_cast<Ending>(draw(4));
      post([this, &waiter, ending] { arrange(waiter, ending); });
      park(waiter);
      --waiter.left;
    }
  }

  // On the strand: decides who will wake it.
  void arrange(WaitingThread& waiter, Ending ending) {
    switch (ending) {
      case Ending::by_network:
        on_wire_.push_back(&waiter);
        break;
      case Ending::by_computer:
        for_computer_.push_back(&waiter);
        break;
      case Ending::at_once:
        wake(waiter);
        break;
      case Ending::by_timer:
        timers_.push_back(&waiter);
        ++timers_set_;
        if (polling_ != present_) role_.notify_poller(*strand_nudges_);
        break;
    }
  }

  // A thread that never waits, and wakes others from time to time.
  void compute() {
    for (;;) {
      block([this] { return !for_computer_.empty(); }, /*times_out=*/false);
      WaitingThread& waiter = *for_computer_.front();
      for_computer_.pop_front();
      post([this, &waiter] { wake(waiter); });
    }
  }

  void deliver() {
    for (;;) {
      block([this] { return !on_wire_.empty(); }, /*times_out=*/false);
      arrived_.push_back(on_wire_.front());
      on_wire_.pop_front();
    }
  }

  const uint64_t seed_;
  const Flaw flaw_;
  fibers::StackPool& stacks_;
  uint64_t draws_ = 0;
  int steps_ = 0;
  int idle_ticks_ = 0;
  std::string problem_;
  bool abandoned_ = false;

  std::vector<std::unique_ptr<Thread>> threads_;
  Thread* present_ = nullptr;

  ModelSeat relief_;
  WaitingThread waiters_[kWaiters];
  PollingRole role_;
  StrandQueue strand_;
  Nudges* strand_nudges_ = nullptr;
  int on_strand_ = 0;
  int pollers_ = 0;
  Thread* polling_ = nullptr;
  bool interrupted_ = false;
  int timers_set_ = 0;
  std::deque<WaitingThread*> timers_;
  std::deque<WaitingThread*> on_wire_;
  std::deque<WaitingThread*> arrived_;
  std::deque<WaitingThread*> for_computer_;
};

int seeds_until_found(Flaw flaw, int limit) {
  fibers::StackPool stacks({.stack_bytes = 64 * 1024});
  for (int seed = 0; seed < limit; ++seed)
    if (!Model(static_cast<uint64_t>(seed), flaw, stacks).run().empty()) return seed + 1;
  return 0;
}

TEST(PollingModel, NoWakeUpIsLostAndNobodyPollsTwice) {
  // Goal: no lost wake-up, no two pollers, nobody asleep for ever with work queued.
  fibers::StackPool stacks({.stack_bytes = 64 * 1024});
  for (uint64_t seed = 0; seed < 10'000; ++seed) {
    const std::string problem = Model(seed, Flaw::none, stacks).run();
    ASSERT_EQ(problem, "");
  }
}

TEST(PollingModel, TheModelNoticesWhatIsLeftOut) {
  // Goal: the search has teeth. Method: one rule left out at a time.
  EXPECT_GT(seeds_until_found(Flaw::no_interrupt, 1'000), 0);
  EXPECT_GT(seeds_until_found(Flaw::no_signal_of_sleepers, 1'000), 0);
  EXPECT_GT(seeds_until_found(Flaw::release_without_look, 1'000), 0);
}

}  // namespace
}  // namespace rehearsal::real
