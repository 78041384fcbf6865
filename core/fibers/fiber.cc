#include "core/fibers/fiber.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "core/base/check.h"
#include "core/fibers/carrier.h"
#include "core/fibers/default_generator.h"
#include "core/fibers/own_context.h"

namespace rehearsal::fibers {
namespace {

// The Itanium C++ ABI fixes the layout of the record behind __cxa_get_globals, but not its members'
// names. Constant for a thread and never null, so it also names the thread.
[[gnu::noinline]] ExceptionState& thread_exceptions() {
  return *reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals());
}

StackBounds bounds_of(const Stack& stack) { return {stack.bottom(), stack.size()}; }

// The one that runs on this thread. std::terminate is told nothing.
thread_local Fiber* running_fiber = nullptr;

// A handler cannot know the former one otherwise.
std::terminate_handler former_handler = nullptr;

}  // namespace

Fiber::Fiber(std::string label, Stack stack, Task body)
    : label_(std::move(label)), body_(std::move(body)), stack_(std::move(stack)) {
  REHEARSAL_CHECK(static_cast<bool>(body_), label_);
}

Fiber::~Fiber() { REHEARSAL_CHECK(done(), label_, "is destroyed while its stack is in use"); }

void Fiber::resume() {
  REHEARSAL_CHECK(phase_ == Phase::fresh || phase_ == Phase::suspended, label_, int(phase_));
  ExceptionState& exceptions = thread_exceptions();
  if (phase_ == Phase::fresh) begin();
  REHEARSAL_CHECK(thread_ == &exceptions, label_, "is resumed by another thread");
  phase_ = Phase::running;
  torch_state_.swap_with_thread();
  std::swap(exceptions, exceptions_);
  Fiber* const outer = std::exchange(running_fiber, this);
  const OwnContext& thread = OwnContext::of_thread();
  resumer_ = outer != nullptr ? outer->context_ : &thread.context;
  resumer_bounds_ = outer != nullptr ? bounds_of(*outer->stack_) : thread.bounds;

  announce_jump(bounds_of(*stack_));
  context_->resume();

  running_fiber = outer;
  std::swap(exceptions, exceptions_);
  torch_state_.swap_with_thread();
  if (body_ended_) end();
}

void Fiber::suspend() {
  REHEARSAL_CHECK(phase_ == Phase::running, label_, int(phase_));
  REHEARSAL_CHECK(stack_->contains(__builtin_frame_address(0)), label_, "suspends elsewhere");
  save_registers(suspended_at_);
  phase_ = Phase::suspended;
  announce_jump(resumer_bounds_);
  resumer_->resume();
}

void Fiber::discard() {
  REHEARSAL_CHECK(phase_ == Phase::fresh, label_, int(phase_));
  body_ = nullptr;
  end();
}

void Fiber::abandon() {
  REHEARSAL_CHECK(phase_ == Phase::suspended, label_, int(phase_));
  if (on_abandon_) std::exchange(on_abandon_, nullptr)();
  stack_->carrier().end();
  stack_->leave();
  phase_ = Phase::done;
  stack_.reset();
}

void Fiber::set_on_terminate(UniqueFunction<bool()> may_leave) {
  may_leave_ = std::move(may_leave);
  static const bool once = [] {
    former_handler = std::set_terminate([] {
      leave_running();
      if (former_handler != nullptr) former_handler();
      std::abort();
    });
    return true;
  }();
  static_cast<void>(once);
}

void Fiber::leave_running() {
  Fiber* const fiber = running_fiber;
  if (fiber == nullptr) return;
  // Code that it asks may come here again.
  UniqueFunction<bool()> may_leave = std::exchange(fiber->may_leave_, nullptr);
  if (!may_leave || !may_leave()) return;
  fiber->left_ = true;
  for (;;) fiber->suspend();
}

std::exception_ptr Fiber::take_exception() { return std::exchange(exception_, nullptr); }

void Fiber::begin() {
  thread_ = &thread_exceptions();
  execution_ = running_execution();
  Carrier& carrier = stack_->carrier();
  carrier.begin(*this);
  context_ = carrier.context();
}

void Fiber::leave_ended() {
  body_ended_ = true;
  announce_jump(resumer_bounds_);
  resumer_->resume();
}

// The top of the fiber's stack: nothing may escape it, it would end the program.
void Fiber::run_body() {
  try {
    body_();
  } catch (...) {
    exception_ = std::current_exception();
  }
  body_ = nullptr;
}

void Fiber::end() {
  if (context_ != nullptr) stack_->carrier().end();
  phase_ = Phase::done;
  stack_.reset();
}

}  // namespace rehearsal::fibers
