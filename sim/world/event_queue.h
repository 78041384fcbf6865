#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/time.h"
#include "net_fake/schedule.h"
#include "sim/strategies/strategy.h"

namespace rehearsal::sim {

// Virtual time: what will happen, in order of instants; events of one instant in the order in which
// they were scheduled. An event that was called off is dropped when it comes up, or earlier when
// such events are many.
//
// A strategy may change the order: it chooses among the first events of all chains that are due
// within a window of the first event. Nothing is held back for longer than the window; time moves
// forward only, to the instant of what happens.
class EventQueue final : public net_fake::Schedule {
 public:
  struct Event {
    Instant when{};
    uint64_t serial = 0;
    net_fake::Occurrence* what = nullptr;
    uint64_t ticket = 0;
  };

  Instant now() const override { return now_; }
  void at(Instant when, net_fake::Occurrence& what, uint64_t ticket) override;

  // From now on `strategy` chooses; null: the order of instants. It outlives its use.
  void set_strategy(Strategy* strategy, Duration window);

  // Notes what is scheduled and happens; null: not any more. It outlives its use.
  void set_profile(Profile* profile) { profile_ = profile; }

  // How many events the strategy chose from, at each of its choices; 255 stands for more.
  [[nodiscard]] const std::vector<uint8_t>& widths() const { return widths_; }

  // The next event; time is not moved yet. Empty if nothing will ever happen.
  [[nodiscard]] std::optional<Event> peek();

  // Takes it off the queue and moves time to it. REQUIRES: peek() was not empty, nothing since.
  void take(const Event& next);

  // The first events of all chains, however late, in the order in which they are due; no strategy
  // is asked. An event that they name is there until it has happened or was called off.
  [[nodiscard]] std::vector<Enabled> heads();
  [[nodiscard]] Event event(uint64_t serial) const;

  // An event scheduled from now on has this serial or a later one.
  [[nodiscard]] uint64_t next_serial() const { return next_serial_; }

  // Time passes up to `when`. REQUIRES: nothing is due before.
  void move_to(Instant when) { now_ = std::max(now_, when); }

  // Forgets everything that is called off.
  void sweep();

  // Scheduled events, those that were called off included.
  [[nodiscard]] size_t size() const { return heap_.size(); }

 private:
  void sift_up(size_t at);
  void sift_down(size_t at);
  void remove(size_t at);
  [[nodiscard]] Event choose();
  void gather_enabled(Instant last);
  [[nodiscard]] const Event* find(uint64_t serial) const;

  // A heap in which each node has four children: half the levels, and children share cache lines.
  std::vector<Event> heap_;
  Instant now_{};
  uint64_t next_serial_ = 1;
  Strategy* strategy_ = nullptr;
  Profile* profile_ = nullptr;
  std::vector<uint8_t> widths_;
  Duration window_{};
  uint64_t chosen_ = 0;           // serial of what the strategy chose last; zero: it has happened
  std::vector<Enabled> enabled_;  // what it chose from
  size_t sweep_at_ = 1024;
};

}  // namespace rehearsal::sim
