#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/trace.h"

namespace rehearsal {

// Counts the calls of one worker that fail again and again, as those of a loop do that tries again
// whatever fails. A call that fails at once never leaves its worker: it is known by then that
// nobody will answer it. Hears the events of one node, in their order.
class FailingCalls {
 public:
  // The calls of one function at one peer since a value came last: from that peer, or to the
  // execution that makes them.
  struct Streak {
    std::string function;
    WorkerId peer;
    Hash128 path;             // of the execution that made the last one
    uint64_t count = 0;       // that have failed
    uint64_t at_once = 0;     // of them, those that failed at once
    uint64_t in_instant = 0;  // of these, those that failed at the same instant as the last one
    Instant since{};          // when the first one failed
    Instant last{};
    bool last_at_once = false;
    ErrorKind kind{};               // of the last one
    uint64_t forgiven = 0;          // of all that have failed
    uint64_t forgiven_at_once = 0;  // of those that failed at once
  };

  // At once has failed what has within `moment`, before a frame of it was seen to be sent.
  explicit FailingCalls(Duration moment) : moment_(moment) {}

  // The streak that has grown by this event; null: none has. It is valid until the next event.
  const Streak* on_event(const Event& event, Instant when);

  // Up to now trying again was right.
  void forgive();

  // In the order in which they began.
  [[nodiscard]] const std::vector<Streak>& streaks() const { return streaks_; }

 private:
  const Streak* complete(const Event& completed, Instant when);
  void forget(const Event& completed);
  [[nodiscard]] Streak& streak_to(WorkerId peer);

  const Duration moment_;
  // The call that was made last.
  CausalId called_;
  Instant called_at_{};
  std::string function_;
  bool sent_ = false;
  std::vector<Streak> streaks_;
};

}  // namespace rehearsal
