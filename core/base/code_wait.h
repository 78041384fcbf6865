#pragma once

#include <optional>
#include <string>

#include "core/base/runtime.h"
#include "core/base/time.h"

namespace rehearsal {

// A wait of user code in a primitive that belongs to the program and not to the node, as a mutex:
// other code of the same worker ends it. Lives on the stack that waits.
class CodeWait {
 public:
  // AtKill other than `ends`: no exception can leave it, and it lasts until it is woken or has had
  // its time, whatever else happens.
  explicit CodeWait(AtKill at_kill) : waiter(at_kill) {}
  CodeWait(const CodeWait&) = delete;
  CodeWait& operator=(const CodeWait&) = delete;
  virtual ~CodeWait() = default;

  // The primitive, for people; asked while the wait lasts, on the strand.
  [[nodiscard]] virtual std::string describe() const = 0;

  // The path of the execution that it waits for: who holds the mutex. None: not known.
  [[nodiscard]] virtual std::optional<Hash128> holder() const { return std::nullopt; }

  // When it ends by itself; none: never.
  std::optional<Instant> until;

  [[nodiscard]] bool may_throw() const { return waiter.at_kill == AtKill::ends; }

  Waiter waiter;
};

}  // namespace rehearsal
