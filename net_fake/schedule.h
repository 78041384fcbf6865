#pragma once

#include <compare>
#include <cstdint>

#include "core/base/ids.h"
#include "core/base/time.h"

namespace rehearsal::net_fake {

// Events that keep their order, whoever decides the order of the rest: the frames of a lane, the
// timers of a worker, what one stack does, and so on. `first` and `second` say whose.
struct Chain {
  // `news`: an end is told that its link stands or is lost; `closing`: that its peer has closed it;
  // `connecting`: what happens to the link itself.
  enum class Kind : uint8_t {
    small_lane,
    large_lane,
    stack,
    timers,
    news,
    closing,
    connecting,
    rest
  };
  Kind kind = Kind::rest;
  uint32_t first = 0;   // the sender, the worker, who is told, the lower end of the link
  uint32_t second = 0;  // the receiver, the stack, about whom, the other end
  auto operator<=>(const Chain&) const = default;
};

// Something that will happen at an instant of virtual time. One object may be scheduled many times;
// the ticket tells them apart. It outlives the Schedule's last mention of it.
class Occurrence {
 public:
  virtual ~Occurrence() = default;

  // The worker that the event belongs to. If to several (a link is made): any one of them.
  [[nodiscard]] virtual WorkerId worker(uint64_t ticket) const = 0;

  // Its chain. Of one chain, no later event overtakes an earlier one.
  [[nodiscard]] virtual Chain chain(uint64_t) const { return {}; }

  // False once it has been called off: it is then dropped without a trace.
  [[nodiscard]] virtual bool due(uint64_t ticket) const = 0;

  virtual void happen(uint64_t ticket) = 0;
};

// Virtual time and its queue of events.
class Schedule {
 public:
  virtual ~Schedule() = default;

  [[nodiscard]] virtual Instant now() const = 0;

  // Calls what.happen(ticket) at `when`, and never before this call has returned. Events of one
  // instant happen in the order of these calls.
  virtual void at(Instant when, Occurrence& what, uint64_t ticket) = 0;
};

}  // namespace rehearsal::net_fake
