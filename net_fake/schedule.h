#pragma once

#include <cstdint>

#include "core/base/ids.h"
#include "core/base/time.h"

namespace rehearsal::net_fake {

// Something that will happen at an instant of virtual time. One object may be scheduled many times;
// the ticket tells them apart. It outlives the Schedule's last mention of it.
class Occurrence {
 public:
  virtual ~Occurrence() = default;

  // Whose event it is. Several workers' (a link is made): any one of them.
  [[nodiscard]] virtual WorkerId worker(uint64_t ticket) const = 0;

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
