#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/base/frame.h"
#include "core/base/ids.h"
#include "core/base/ring.h"
#include "core/base/time.h"
#include "net_fake/schedule.h"

namespace rehearsal::net_fake {

class Flows;

// Where the frames of a flow go when they have been carried: `delay` is still to pass.
class FlowEnd {
 public:
  virtual ~FlowEnd() = default;
  virtual void carried(Frame&& frame, uint64_t bytes, Duration delay) = 0;
};

// The large frames of one direction of a link, on their way through the machines' network cards:
// first in, first out, the first one is being carried. Outlived by its Flows and its end.
class Flow {
 public:
  Flow(Flows& flows, FlowEnd& end, WorkerId from, WorkerId to)
      : flows_(flows), end_(end), from_(from), to_(to) {}

  // `bytes_per_second`: what the link itself allows; zero: without limit.
  void push(Frame&& frame, uint64_t bytes, Duration delay, uint64_t bytes_per_second);

  // Drops the last `count` frames; returns their bytes. The first may be half carried.
  uint64_t drop_last(uint64_t count);

  // While it stalls it carries nothing and takes no bandwidth.
  void set_stalled(bool stalled);

  [[nodiscard]] uint64_t size() const { return frames_.size(); }
  [[nodiscard]] bool empty() const { return frames_.empty(); }

 private:
  friend class Flows;
  struct Carried {
    Frame frame;
    uint64_t bytes = 0;
    Duration delay{};
    uint64_t bytes_per_second = 0;
  };
  void begin_first();

  Flows& flows_;
  FlowEnd& end_;
  const WorkerId from_;
  const WorkerId to_;
  Ring<Carried> frames_;
  bool stalled_ = false;
  __int128 left_ = 0;  // of the first frame, in billionths of a byte
  uint64_t rate_ = 0;  // bytes a second, from the last change on
};

// How large frames share bandwidth. Every machine sends so many bytes a second and receives as
// many; the frames that are being carried at a time share that fairly: no flow could be faster
// without making a slower one slower (max-min fairness, by progressive filling; Bertsekas and
// Gallager, "Data Networks"). Rates change when a frame has been carried, begins, or stalls; a
// change costs the square of the number of flows. Packets are not simulated.
class Flows final : private Occurrence {
 public:
  Flows(Schedule& schedule, uint64_t worker_bytes_per_second)
      : schedule_(schedule), capacity_(worker_bytes_per_second) {}

 private:
  friend class Flow;
  void begin(Flow& flow);
  void end(Flow& flow);

  // Accounts for what was carried since the last change, and works out what is next.
  void settle();
  void share();
  void schedule_next();

  WorkerId worker(uint64_t) const override { return active_.front()->from_; }
  bool due(uint64_t ticket) const override { return ticket == generation_ && !active_.empty(); }
  void happen(uint64_t ticket) override;

  Schedule& schedule_;
  const uint64_t capacity_;
  std::vector<Flow*> active_;  // in the order in which they began
  Instant settled_{};
  uint64_t generation_ = 0;  // of what is scheduled
};

}  // namespace rehearsal::net_fake
