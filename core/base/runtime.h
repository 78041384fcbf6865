#pragma once

#include <cstdint>
#include <memory>

#include "core/base/execution.h"
#include "core/base/ids.h"
#include "core/base/time.h"
#include "core/base/unique_function.h"

namespace rehearsal {

using TimerId = Id<struct TimerTag, uint64_t>;

// Where a body runs: on the stack that leaves the strand, to completion (it may not park); or on a
// stack of its own that may park, when its turn comes.
// A body that is to run at once begins where an inline one would, but on a stack of its own. It is
// for what dies: it runs also when the node was killed, and its parks answer so then.
enum class StackPlacement : uint8_t { inline_, at_once, pool };

enum class ParkOutcome : uint8_t {
  woken,       // somebody called wake
  would_park,  // this stack may not park; nothing happened
  killed,      // the node was killed; the caller unwinds with NodeKilled
};

// How a kill treats a park.
enum class AtKill : uint8_t {
  ends,   // it answers `killed`
  lasts,  // nothing: code that unwinds waits for other code that does so, too
  stays,  // nothing, and the stack does not go on where the kill unwinds stacks
};

// One wait of one stack. Lives on the stack that parks, from before anybody can wake it until
// `park` has returned. `woken`, `by_code` and `slot` belong to the Runtime.
struct Waiter {
  explicit Waiter(AtKill at_kill = AtKill::ends) : at_kill(at_kill) {}
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  const AtKill at_kill;
  bool woken = false;
  bool by_code = false;  // wake_by_code did it
  void* slot = nullptr;
};

// Where a node runs: its time, its strand and its stacks. One Runtime per node and life. A node's
// strand runs one task at a time; all protocol code of the node runs on it.
class Runtime {
 public:
  virtual ~Runtime() = default;

  // The present instant. Constant while one strand task runs in virtual time.
  [[nodiscard]] virtual Instant now() const = 0;

  // Runs `task` on the strand at `when` or as soon after it as the strand is free. A past instant
  // is due at once, but never runs before the present task has ended. Called on the strand.
  virtual TimerId call_at(Instant when, Task task) = 0;

  // Forgets a timer: its task will not run. An id that already ran is ignored. Called on the
  // strand.
  virtual void cancel(TimerId timer) = 0;

  // Enters the strand: runs `task` before returning if the strand is free, else queues it behind
  // what is running and queued (also when called from within a task). Tasks run in the order of
  // their posts. Any thread, any stack; never parks. Closures are destroyed off the strand. Works
  // until the Runtime is destroyed, also after its node has ended.
  virtual void post(Task task) = 0;

  // Runs `body`, which is user code of `execution`, off the strand, where `placement` says. The
  // body catches every exception itself, except NodeKilled, which ends it silently. `execution`
  // outlives the body; the body's closure is destroyed before the next `post` of the same stack
  // ends or at the latest when the body has run. If the node is killed first, the closure is
  // destroyed unrun, unless it is to run at once. Called on the strand.
  virtual void execute(Execution& execution, StackPlacement placement, Task body) = 0;

  // Parks the calling stack until `wake(waiter)`; returns at once if that has happened already.
  // Off the strand only: on the strand, in an inline body, and where LibTorch's own engine is
  // below on the stack, the answer is would_park.
  [[nodiscard]] virtual ParkOutcome park(Waiter& waiter) = 0;

  // Ends a park, now or yet to come. Called on the strand, once for each Waiter. Does nothing if
  // wake_by_code has ended it.
  virtual void wake(Waiter& waiter) = 0;

  // The same, from user code off the strand: any thread, any stack, in the middle of whatever. Runs
  // nothing. False if the park had been ended already.
  virtual bool wake_by_code(Waiter& waiter) = 0;
};

// A thread that runs an execution for as long as this lives; it dies on that thread.
class AdoptedThread {
 public:
  virtual ~AdoptedThread() = default;
};

// Tells which execution runs on the calling stack.
class Executions {
 public:
  virtual ~Executions() = default;

  // The execution of the calling stack; null on the strand and on threads that nobody registered.
  [[nodiscard]] virtual Execution* running() const = 0;

  // The number of LibTorch's next autograd node on the calling thread when its execution last
  // started, resumed or had its nodes noted. Of the stack and not of the execution: one that has
  // begun its next turn elsewhere may still be leaving this stack.
  [[nodiscard]] virtual uint64_t& next_node() const = 0;

  // Whether `park` may be called here: false on the strand, in an inline body, and where
  // LibTorch's own engine is below on the stack.
  [[nodiscard]] virtual bool may_park() const = 0;

  // The calling thread, which the user has started and which runs no execution, runs this one until
  // what is returned dies. Null where users have no threads.
  [[nodiscard]] virtual std::unique_ptr<AdoptedThread> adopt_thread(Execution& execution) const {
    static_cast<void>(execution);
    return nullptr;
  }
};

}  // namespace rehearsal
