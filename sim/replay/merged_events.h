#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/trace.h"

namespace rehearsal::sim {

// An event that is kept. `begins`: else it belongs to what began with the one before it.
struct KeptEvent {
  KeptEvent(const Event& seen, bool begins);
  [[nodiscard]] Event event() const;
  [[nodiscard]] bool begins() const { return begins_; }

 private:
  Event event_;
  bool begins_;
  std::string text_, value_;
};

// The events of one life, in their order.
struct EventList {
  WorkerId worker;
  Incarnation incarnation;
  std::deque<KeptEvent> events;
  bool cut_off = false;  // the life ended in the middle
};

// Puts the events of several lives into one order in which each life keeps its own, and a frame is
// handled after it was sent, and a life that was cut off is given up after its end; events that
// belong together stay together; among those
// that may come next, the one with the smallest `when`. A frame that no list sends waits for
// nothing: its sender has no list, or one that was cut off.
class MergedEvents {
 public:
  explicit MergedEvents(const std::vector<EventList>& lives);

  struct Next {
    size_t life = 0;       // its position
    size_t event = 0;      // the position in its list
    bool is_last = false;  // of its life
  };
  // Nothing: all have come.
  [[nodiscard]] std::optional<Next> next();

  // Incarnations that were met, by worker, and have no list.
  [[nodiscard]] const std::set<std::pair<WorkerId, uint64_t>>& unknown() const { return unknown_; }

 private:
  using FrameName = std::tuple<uint64_t, uint64_t, uint64_t>;  // sender, receiver, sequence number

  [[nodiscard]] bool may_come(size_t life) const;  // its next events that belong together
  [[nodiscard]] bool may_come(size_t life, const Event& event) const;
  void come(size_t life, size_t number);
  void name_sends(size_t life);

  const std::vector<EventList>& lives_;
  std::optional<size_t> going_on_;                       // this life
  std::vector<size_t> at_;                               // by life: what comes next
  std::map<uint64_t, size_t> known_;                     // incarnations
  std::map<std::pair<size_t, WorkerId>, uint64_t> met_;  // the peer's incarnation at last
  std::vector<std::map<size_t, FrameName>> sends_;       // by life and event
  std::set<FrameName> to_be_sent_;                       // and not yet
  std::set<std::pair<WorkerId, uint64_t>> unknown_;
};

}  // namespace rehearsal::sim
