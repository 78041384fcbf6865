#pragma once

#include <deque>
#include <utility>

#include "core/base/check.h"
#include "core/base/stream_set.h"
#include "core/base/unique_function.h"

namespace rehearsal {

// Lets one execution at a time into a value: a table of the strand, not a lock. Later ones wait in
// strand order.
class Monitor {
 public:
  // Runs `entered` now or once it is this caller's turn. On the strand.
  void enter(Task entered) {
    if (held_) {
      queue_.push_back(std::move(entered));
      return;
    }
    held_ = true;
    entered();
  }

  // Lets the next one in. REQUIRES: held. One that leaves as soon as it is let in comes back here:
  // then the loop that has let it in goes on, however many there are. The monitor lives until then.
  void leave() {
    REHEARSAL_CHECK(held_);
    left_ = true;
    if (std::exchange(lets_in_, true)) return;
    while (std::exchange(left_, false) && held_) let_next_in();
    lets_in_ = false;
  }

  // Nobody will leave any more: what waits is the caller's to destroy. It may own this monitor.
  [[nodiscard]] std::deque<Task> give_up() { return std::exchange(queue_, {}); }

  [[nodiscard]] bool held() const { return held_; }

  // The value that it guards lives in these streams: whoever is in the monitor gives its work on
  // devices to them. Null: there are no devices, or the value is not there yet.
  [[nodiscard]] const Streams& streams() const { return streams_; }
  void set_streams(Streams streams) { streams_ = std::move(streams); }

 private:
  void let_next_in() {
    if (queue_.empty()) {
      held_ = false;
      return;
    }
    Task next = std::move(queue_.front());
    queue_.pop_front();
    next();
  }

  bool held_ = false;
  bool left_ = false;     // by whoever has it, since the next one was let in
  bool lets_in_ = false;  // `leave` is under way
  Streams streams_;
  std::deque<Task> queue_;
};

}  // namespace rehearsal
