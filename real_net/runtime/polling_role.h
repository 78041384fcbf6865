#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "real_net/runtime/thread_signal.h"

namespace rehearsal::real {

// Decides which thread polls the network, and whom to wake. Pure bookkeeping: it neither locks nor
// sleeps. Its caller holds one lock around every method, and carries out the Nudges after having
// released it.
//
// One thread at a time has the role. A thread that waits asks `next` again and again: it polls if
// the role is free, else it sleeps on its own signal. A poller that stops waiting hands the role to
// a sleeper. The relief thread polls while no other thread waits.
//
// The invariant whenever the lock is free: if the role is free and threads sleep, one of them has
// been signalled and will ask `next` or call `leave`; a notified seat sleeps neither in the poll
// nor without a signal on its way.
class PollingRole {
 public:
  // A thread's place. Outlives the role.
  struct Seat {
    ThreadSignal signal;
    // Something came for this thread: it looks at its own affairs before it polls or sleeps. Set
    // under the lock; a spinning poller reads it without.
    std::atomic<bool> notified{false};
    bool asleep = false;  // between next's answer `sleep` and `awake`
  };

  // The work to do once the lock is released.
  struct Nudges {
    std::vector<Seat*> signals;
    bool interrupt = false;  // end the poller's sleep in the network
    [[nodiscard]] bool empty() const { return signals.empty() && !interrupt; }
  };

  enum class Step : uint8_t {
    poll,    // the seat has the role until `end_turn`
    sleep,   // wait for the signal, then call `awake`
    tick,    // relief only: wait for the signal, half a millisecond at most
    dormant  // relief only: wait for the signal
  };

  explicit PollingRole(Seat& relief) : relief_(relief) {}

  // For a thread that waits and has nothing else to do.
  [[nodiscard]] Step next(Seat& seat, Nudges& nudges);
  void awake(Seat& seat);

  // For a thread that waits and takes no part in polling: it sleeps until it is notified, then
  // calls `awake`. REQUIRES: it has called `leave` since it polled.
  void rest(Seat& seat) { seat.asleep = true; }

  // The poller, within its turn: asks to sleep in the network until something comes. False if
  // something has come.
  [[nodiscard]] bool begin_sleep(Seat& seat);
  void end_sleep();
  void end_turn(Seat& seat);

  // The thread stops waiting, or begins something that takes long: hands the role to a sleeper.
  void leave(Nudges& nudges);

  // The thread begins something that is mostly short and then asks again: nobody else is woken to
  // poll, but the relief thread watches.
  void pause(Nudges& nudges);

  // Something came for this seat.
  void notify(Seat& seat, Nudges& nudges);

  // The thread that sleeps in the network has to look at the timers again.
  void notify_poller(Nudges& nudges);

  // For the relief thread: each time it has nothing else to do.
  [[nodiscard]] Step next_of_relief(Nudges& nudges);

  [[nodiscard]] bool taken() const { return poller_ != nullptr; }

 private:
  void interrupt_sleep(Nudges& nudges);

  Seat& relief_;
  Seat* poller_ = nullptr;
  bool poller_sleeps_ = false;  // in the network, and not interrupted
  bool timers_changed_ = false;
  bool relief_asked_ = false;  // to let go
  bool relief_dormant_ = false;
  uint64_t turns_ = 0;
  uint64_t turns_at_tick_ = 0;
  std::vector<Seat*> sleepers_;
};

}  // namespace rehearsal::real
