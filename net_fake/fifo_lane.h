#pragma once

#include <cstdint>

#include "core/base/frame.h"
#include "core/base/ring.h"
#include "core/base/time.h"
#include "net_fake/schedule.h"

namespace rehearsal::net_fake {

class FifoLane;

// Where a lane's frames go.
class LaneEnd {
 public:
  virtual ~LaneEnd() = default;
  virtual void arrive(FifoLane& lane, Frame&& frame) = 0;
};

// One lane of one direction of a link: frames on their way, first in, first out. Only the first one
// is scheduled; the others follow it. Each connection uses the lane anew, after `clear`.
class FifoLane final : public Occurrence {
 public:
  FifoLane(Schedule& schedule, LaneEnd& end, Chain chain)
      : schedule_(schedule), end_(end), chain_(chain) {}

  // The frame arrives at `when`, but not before those ahead of it.
  void push(Frame&& frame, uint64_t bytes, Instant when);

  // Drops the last `count` frames; returns their bytes.
  uint64_t drop_last(uint64_t count);
  void clear();

  // While stalled nothing arrives. Frames due then arrive at `resume_at` or later.
  void stall() { stalled_ = true; }
  void move_again(Instant resume_at);

  [[nodiscard]] uint64_t size() const { return frames_.size(); }
  [[nodiscard]] bool empty() const { return frames_.empty(); }

  // Until when the wire is busy with what was sent on this lane.
  Instant wire_free{};

  WorkerId worker(uint64_t) const override { return WorkerId{chain_.second}; }
  Chain chain(uint64_t) const override { return chain_; }
  bool due(uint64_t ticket) const override { return ticket == generation_ && !stalled_; }
  void happen(uint64_t ticket) override;

 private:
  struct Carried {
    Frame frame;
    uint64_t bytes = 0;
    Instant arrival{};
  };
  void schedule_first();

  Schedule& schedule_;
  LaneEnd& end_;
  const Chain chain_;
  Ring<Carried> frames_;
  bool stalled_ = false;
  uint64_t generation_ = 0;  // of what is scheduled
};

}  // namespace rehearsal::net_fake
