#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "core/base/unique_function.h"
#include "core/fibers/inspection.h"
#include "core/fibers/sanitizer.h"
#include "core/fibers/stack_pool.h"
#include "core/fibers/thread_state.h"

namespace boost::fibers {
class context;
}

namespace rehearsal {
class Execution;
}

namespace rehearsal::fibers {

// The state that the C++ runtime library keeps for each thread about exceptions being thrown and
// handled (the head of the chain of caught exceptions, and the count of uncaught ones).
struct ExceptionState {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

// A body with a stack of its own: whoever resumes it runs it until it suspends or ends. There is no
// scheduler in here. A fiber stays on the thread that resumed it first; it may be resumed from any
// stack of that thread, another fiber's too. To Boost.Fiber's primitives it is a fiber of theirs.
//
// Each switch, in both directions, exchanges the exceptions that are being handled and LibTorch's
// thread-local state (ThreadState): a fiber starts in the default state, finds its own again after
// each suspend, and changes nothing for whoever resumes it. It may suspend inside `catch`, inside a
// destructor during unwinding, and inside any LibTorch guard.
//
// An exception that leaves the body ends the fiber and is kept for the owner.
//
// A fiber that has started must end: nobody can free what lives on its stack. Its owner resumes it
// with a flag of his own that makes the code around `suspend` throw. Destroying a fiber that is
// neither done nor discarded nor abandoned is a bug.
class Fiber {
 public:
  // Suspended at the start of `body`; runs when it is resumed first. The label is for people.
  Fiber(std::string label, Stack stack, Task body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the fiber until it suspends or ends. Not on the fiber's own stack. When the body has
  // ended, its closure is destroyed and the stack is back in its pool.
  void resume();

  // Returns to whoever resumed the fiber, and comes back with the next resume. On the fiber's own
  // stack only.
  void suspend();

  // Drops a fiber that was never resumed: destroys the body unrun.
  void discard();

  // Leaves a suspended fiber as it is, for ever: nothing that lives on its stack is destroyed, and
  // the stack is not used again. For code that can neither go on nor unwind.
  void abandon();

  // Called when it is abandoned: takes what lives on its stack out of what does not. Null: nothing.
  void set_on_abandon(UniqueFunction<void()> take_out) { on_abandon_ = std::move(take_out); }

  // Asked, on the fiber's stack, when its code calls std::terminate: if true, the process goes on.
  // The fiber then suspends for ever, has `left`, and is to be abandoned. Where it is not asked, or
  // says no, and for code on no fiber, std::terminate does what it did before. Asked once; before
  // the fiber is resumed first.
  void set_on_terminate(UniqueFunction<bool()> may_leave);
  [[nodiscard]] bool left() const { return left_; }

  // Whether the body has ended, or was discarded or abandoned.
  [[nodiscard]] bool done() const { return phase_ == Phase::done; }
  [[nodiscard]] bool started() const { return phase_ != Phase::fresh; }
  // Whether the fiber is on the chain of resumes that leads to the running code.
  [[nodiscard]] bool running() const { return phase_ == Phase::running; }

  // The exception that left the body, once; null if there is none.
  [[nodiscard]] std::exception_ptr take_exception();

  [[nodiscard]] const std::string& label() const { return label_; }

  // The execution that ran on the thread when it was resumed first; null: none. It may have ended
  // when the body has.
  [[nodiscard]] const Execution* execution() const { return execution_; }

  // For a debugger: where the fiber suspended; null unless it is suspended.
  [[nodiscard]] const SavedRegisters* suspended_at() const {
    return phase_ == Phase::suspended ? &suspended_at_ : nullptr;
  }

 private:
  enum class Phase : uint8_t { fresh, suspended, running, done };

  // Of the thread's running fiber: what std::terminate does.
  static void leave_running();

  friend class Carrier;
  void begin();
  void run_body();
  void leave_ended();
  void end();

  const std::string label_;
  Task body_;
  Phase phase_ = Phase::fresh;
  UniqueFunction<bool()> may_leave_;
  UniqueFunction<void()> on_abandon_;
  bool left_ = false;
  const Execution* execution_ = nullptr;
  void* thread_ = nullptr;  // names the thread that resumed it first
  ExceptionState exceptions_;
  ThreadState torch_state_;  // the fiber's while it is suspended, its resumer's while it runs
  std::exception_ptr exception_;
  std::optional<Stack> stack_;  // empty once done
  SavedRegisters suspended_at_;
  bool body_ended_ = false;
  boost::fibers::context* context_ = nullptr;  // of the stack's carrier, once started
  boost::fibers::context* resumer_ = nullptr;  // while it runs
  StackBounds resumer_bounds_;
};

}  // namespace rehearsal::fibers
