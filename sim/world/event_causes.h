#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rehearsal::sim {

// An event line, see event_lines.h, as far as causes are concerned. A part that the line lacks is
// empty.
struct EventLine {
  std::string worker;  // without the life
  std::string place;   // with it: "trainer0.0"
  std::string kind;
  std::string peer;
  std::string id;
  std::string message;
  std::string number;
  [[nodiscard]] bool operator==(const EventLine&) const = default;
};
// Empty if it is no event line.
[[nodiscard]] std::optional<EventLine> parse_event_line(std::string_view line);

// The name of the event among those of its run: "frame Call 5f0b8838#2 at trainer0.0".
[[nodiscard]] std::string key_of(const EventLine& line);

// Tells which earlier events led to one. An event follows from the one before at its worker, and
// the receipt of a frame also from its sending.
class EventCauses {
 public:
  // The next line of the trace. Only the last kLinesMax are remembered.
  void add(const std::string& line);

  // Events that `next`, which would be the next line, follows from, oldest first: those of its own
  // story (the same message, call or function, back to what its caller did before), then the last
  // ones of all, `count` together.
  [[nodiscard]] std::vector<std::string> of(const std::string& next, size_t count) const;

  static constexpr size_t kLinesMax = 20'000;

 private:
  struct Known {
    std::string text;
    EventLine parsed;
  };
  // Places in `known_` before `end`; empty if there is none.
  [[nodiscard]] std::optional<size_t> before_at_worker(const EventLine& line, size_t end) const;
  [[nodiscard]] std::optional<size_t> sending_of(const EventLine& line, size_t end) const;
  [[nodiscard]] std::optional<size_t> same_story(const EventLine& line, size_t end) const;

  std::deque<Known> known_;
};

}  // namespace rehearsal::sim
