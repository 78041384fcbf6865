#pragma once

#include <chrono>

#include "core/base/result.h"
#include "real_net/tcp/socket.h"

namespace rehearsal::real {

// Whether a store of c10d answers at an address: connects, greets it as its clients do and waits
// for its answer, until `deadline`. Returns the numeric address where it does: a host may have
// several. c10d itself would wait for ever for a program that takes connections and says nothing.
// The error's kind tells what the text does for people:
//   peer_lost   nobody is there, or it cannot be reached: it may come
//   timeout     somebody takes connections and is silent: it may hang
//   protocol    another program answers
//   overloaded  this process has no descriptor left
[[nodiscard]] Result<Address> ask_store(const Address& address,
                                        std::chrono::steady_clock::time_point deadline);

}  // namespace rehearsal::real
