#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/time.h"
#include "sim/oracle.h"

// The oracles that every run has, one file each. Each says what must never be seen.
namespace rehearsal::sim {

struct NodeWaits;  // wait_graph.h

// A user function runs more than once for a call; or a caller has the value of a call whose user
// function never ran.
[[nodiscard]] std::unique_ptr<Oracle> make_at_most_once();

// A call completes twice, without having been made, later than it said, by a time-out before its
// time by its caller's clock, or not at all although its worker's main ended well.
// `slack`: so much later than its time-out a call may complete.
[[nodiscard]] std::unique_ptr<Oracle> make_completion(Duration slack = std::chrono::seconds(1));

// A value is dropped, or a fork of it deleted, while a live reference holds it; a deleted fork
// comes back; a value or a reference is left when a worker's main has ended well.
[[nodiscard]] std::unique_ptr<Oracle> make_rref_conservation();

// A context or a pass is opened twice, released without having been opened, or never released.
[[nodiscard]] std::unique_ptr<Oracle> make_context_pairing();

// A step of an optimizer is applied twice, by no call, or not between its call and its answer. Each
// is applied in one go, so that the updates of a worker's parameters are linearizable (Herlihy,
// Wing, TOPLAS 1990): they take effect in one order, in which no step comes before one whose answer
// was there before it was called.
[[nodiscard]] std::unique_ptr<Oracle> make_optimizer();

// A worker is given up that has neither crashed nor ended nor given the other one up, and nothing
// can have kept it silent for `peer_timeout`; or a call fails because of a loss, and nobody has
// been given up or is gone. `dynamic`: the group is, and who leaves it is asked nothing more.
[[nodiscard]] std::unique_ptr<Oracle> make_losses(bool dynamic);

// In the calm, for seconds, one worker has given up another that does not know.
[[nodiscard]] std::unique_ptr<Oracle> make_fencing();

// While no fault happens, a message of a worker is not acknowledged for seconds although its link
// stands and its receiver lives.
[[nodiscard]] std::unique_ptr<Oracle> make_promptness();

// More calls of a worker are on their way to another, or wait to be handled there, than its window
// has frames: `window_frames`, the same at all.
[[nodiscard]] std::unique_ptr<Oracle> make_back_pressure(uint64_t window_frames);

// A worker that shuts down in good order cuts something off, or has a timer or an entry of a table
// left, before its end clears them; or something is left when a life is over: stacks, timers,
// entries.
// `lied_to`: one of the workers is mad, and may have told others what it liked.
[[nodiscard]] std::unique_ptr<Oracle> make_no_leak(bool lied_to = false);

// The destructor of a value that a worker holds lets an exception out.
[[nodiscard]] std::unique_ptr<Oracle> make_destructors();

// Two operations on a simulated device touch the same memory, and nothing puts them in order; or
// memory is given out again that an operation may still use.
[[nodiscard]] std::unique_ptr<Oracle> make_device_waits();

// References or autograd contexts are still held when their worker shuts down. Each is added to
// `found`, which outlives the oracle; it is a failure only if `strict`.
[[nodiscard]] std::unique_ptr<Oracle> make_leaked_references(bool strict,
                                                             std::vector<std::string>& found);

// The oracle, which neither sees this worker nor anything that happens between it and others, or
// to what it has made.
[[nodiscard]] std::unique_ptr<Oracle> without_worker(WorkerId left_out,
                                                     std::unique_ptr<Oracle> oracle);

// A table breaks an invariant of its own.
[[nodiscard]] std::unique_ptr<Oracle> make_invariants();

// Stacks have waited for each other for seconds, in a cycle through mutexes of Boost.Fiber and
// calls: none of them will go on before its call's time is up. Keeps in `seen`, which outlives it,
// all waits of its last look, as long as any is in a primitive of the program's.
[[nodiscard]] std::unique_ptr<Oracle> make_deadlock(std::vector<NodeWaits>& seen);

// After the storm, nothing has moved forward for `bound`, or nothing will ever happen, and not all
// have ended. Time counts from when nothing is due any more: a pause of the program (`sleep`,
// `after`) of at least a quarter of the bound, an act of the test, a worker that comes back. Says
// who waits for what. Sooner, where somebody only tries again what fails at once: a call that fails
// as soon as it is made is no progress. At any time: code goes on although its worker has ended, or
// millions of times without a value. `names`: of all workers, in rank order.
[[nodiscard]] std::unique_ptr<Oracle> make_progress(Duration bound,
                                                    std::vector<std::string> names = {});

}  // namespace rehearsal::sim
