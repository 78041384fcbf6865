#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "core/api/call_port.h"
#include "core/base/interval_set.h"
#include "core/base/mutants.h"

namespace rehearsal {

// The caller's end of a stream: puts values into their order, keeps them until they are taken, and
// says how much credit the callee may have. On the strand.
class IncomingStream {
 public:
  // REQUIRES: credit > 0.
  explicit IncomingStream(uint64_t credit) : window_(credit), credit_(credit) {}

  // ---- what arrives ----

  // Notes that the value of this position is here; false if it cannot be: it was already, there is
  // no credit for it, or the stream is shorter.
  [[nodiscard]] bool note(uint64_t position);
  // The same of its end; false if there are more values than it says, or it has ended already.
  [[nodiscard]] bool note_end(uint64_t items, MaybeError error);

  // Keeps the value of a position that was noted, or why it cannot be had: its references are
  // confirmed or refused.
  void put(uint64_t position, Result<Answer> value, const Mutants& mutants);

  // Hands on what is next, in order, for as long as there is somebody who wants it.
  void hand_on();

  // ---- how it stands ----

  // It is at its end, and all values are here; or at one that cannot be had. Then this is how.
  [[nodiscard]] std::optional<Status> outcome() const;
  [[nodiscard]] bool end_known() const { return end_.has_value(); }

  // Credit that the callee should be told, in all; zero: what it has is enough for now.
  [[nodiscard]] uint64_t more_credit();

  // ---- who wants values ----

  // Takes the next value, now or when it comes; in the order asked.
  void take(ValueTaker taker);

  // Nothing more will come: what is in order stays to be taken, then this is what takers get.
  // Returns what nobody can take any more, to be destroyed off the strand.
  [[nodiscard]] std::vector<Answer> finish(Status outcome);

 private:
  struct End {
    uint64_t items;
    MaybeError error;
  };

  const uint64_t window_;
  uint64_t credit_;
  uint64_t taken_ = 0;
  uint64_t ordered_ = 0;         // so many are in `ready_` or were taken
  IntervalSet arrived_{0};       // positions
  uint64_t end_of_arrived_ = 0;  // one more than the greatest of them
  std::map<uint64_t, Result<Answer>> out_of_order_;
  std::deque<Answer> ready_;
  std::deque<ValueTaker> takers_;
  std::optional<End> end_;
  std::optional<Status> finished_;
};

}  // namespace rehearsal
