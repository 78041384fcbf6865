#include "net_fake/fifo_lane.h"

#include <algorithm>
#include <utility>

namespace rehearsal::net_fake {

void FifoLane::push(Frame&& frame, uint64_t bytes, Instant when) {
  if (!frames_.empty()) when = std::max(when, frames_.back().arrival);
  frames_.push({std::move(frame), bytes, when});
  if (frames_.size() == 1 && !stalled_) schedule_first();
}

uint64_t FifoLane::drop_last(uint64_t count) {
  uint64_t bytes = 0;
  for (; count > 0; --count) bytes += frames_.pop_back().bytes;
  if (frames_.empty()) ++generation_;
  return bytes;
}

void FifoLane::clear() {
  drop_last(frames_.size());
  wire_free = {};
}

void FifoLane::move_again(Instant resume_at) {
  if (!stalled_) return;
  stalled_ = false;
  if (frames_.empty()) return;
  frames_.front().arrival = std::max(frames_.front().arrival, resume_at);
  schedule_first();
}

void FifoLane::happen(uint64_t) {
  Carried first = frames_.pop();
  if (!frames_.empty()) {
    frames_.front().arrival = std::max(frames_.front().arrival, first.arrival);
    schedule_first();
  }
  end_.arrive(*this, std::move(first.frame));
}

void FifoLane::schedule_first() { schedule_.at(frames_.front().arrival, *this, ++generation_); }

}  // namespace rehearsal::net_fake
