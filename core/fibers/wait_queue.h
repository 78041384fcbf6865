#pragma once

namespace rehearsal::fibers {

// Whether the waits of Boost.Fiber's primitives really go through wait_queue.cc: has one wait, and
// looks. False with a library whose calls stay inside it (linked with -Bsymbolic-functions); a
// program must then refuse to start.
[[nodiscard]] bool wait_queue_is_ours();

}  // namespace rehearsal::fibers
