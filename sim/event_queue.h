#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/time.h"
#include "net_fake/schedule.h"

namespace rehearsal::sim {

// Virtual time: what will happen, in order of instants; events of one instant in the order in which
// they were scheduled. What has been called off is dropped when it comes up, or earlier when such
// events are many.
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

  // The next event that is due; time is not moved yet. Empty if nothing will ever happen.
  [[nodiscard]] std::optional<Event> peek();

  // Takes it off the queue and moves time to it. REQUIRES: peek() was not empty, nothing since.
  void take(const Event& next);

  // Time passes up to `when`. REQUIRES: nothing is due before.
  void move_to(Instant when) { now_ = std::max(now_, when); }

  // Forgets everything that is called off.
  void sweep();

  // Scheduled events, those that were called off included.
  [[nodiscard]] size_t size() const { return heap_.size(); }

 private:
  static bool before(const Event& one, const Event& other) {
    return one.when != other.when ? one.when < other.when : one.serial < other.serial;
  }
  void sift_up(size_t at);
  void sift_down(size_t at);
  void pop();

  // A heap in which each node has four children: half the levels, and children share cache lines.
  std::vector<Event> heap_;
  Instant now_{};
  uint64_t next_serial_ = 1;
  size_t sweep_at_ = 1024;
};

}  // namespace rehearsal::sim
