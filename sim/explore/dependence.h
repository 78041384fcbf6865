#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace rehearsal::sim::explore {

// A step that may happen next in an explored run, and its workers. `first` and `second` are
// workers, but for `run`, whose second number is the stack's.
struct Transition {
  enum class Kind : uint8_t {
    small_lane,  // first sent a frame, second receives it
    large_lane,  // the same
    run,         // a stack of first goes on
    news,        // first hears that its link to second is lost, or stands again
    closed,      // first hears that second wants no more of it
    connect,     // the link of the two is made; each hears what of its own has arrived
    cut,         // a fault: the link of first and second breaks
    crash,       // a fault: first is dead
    give_up,     // first takes second for dead: rightly after a crash, else a fault
  };
  Kind kind = Kind::run;
  uint32_t first = 0;
  uint32_t second = 0;
  auto operator<=>(const Transition&) const = default;
};
inline constexpr size_t kTransitionKinds = static_cast<size_t>(Transition::Kind::give_up) + 1;

// Whether the order of the two can matter: whether one reads or writes what the other writes, or
// can make the other possible or impossible. A frame that is sent is no such thing: it goes to the
// end of a lane that nobody else fills. Nor is what a worker does on its side of a link that is
// down: what it sends before it hears that the link is lost, before it stands again or after, is on
// the new connection in the same order, behind what must be sent again.
[[nodiscard]] bool dependent(const Transition& one, const Transition& other);

// One word, for example `cut:0,1`.
[[nodiscard]] std::string to_string(const Transition& transition);

}  // namespace rehearsal::sim::explore
