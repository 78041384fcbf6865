#include "core/fibers/fiber.h"

#include <cxxabi.h>

#include <boost/context/preallocated.hpp>
#include <cstdlib>
#include <memory>
#include <utility>

#include "core/base/check.h"

namespace rehearsal::fibers {
namespace {

// The Itanium C++ ABI fixes the layout of the record behind __cxa_get_globals, but not its members'
// names. Constant for a thread and never null, so it also names the thread.
[[gnu::noinline]] ExceptionState& thread_exceptions() {
  return *reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals());
}

// Boost wants to own the memory it runs on; the Fiber does.
struct BorrowedStack {
  boost::context::stack_context allocate() const { return context; }
  void deallocate(boost::context::stack_context&) const noexcept {}
  boost::context::stack_context context;
};

BorrowedStack borrow(const Stack& stack) {
  boost::context::stack_context context;
  context.sp = stack.top();
  context.size = stack.size();
  return {context};
}

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
  if (phase_ == Phase::fresh) {
    thread_ = &exceptions;
    context_ = make_context();
  }
  REHEARSAL_CHECK(thread_ == &exceptions, label_, "is resumed by another thread");
  phase_ = Phase::running;
  torch_state_.swap_with_thread();
  std::swap(exceptions, exceptions_);
  Fiber* const outer = std::exchange(running_fiber, this);

  void* frames = nullptr;
  announce_switch(&frames, {stack_->bottom(), stack_->size()});
  context_ = std::move(context_).resume();
  finish_switch(frames);

  running_fiber = outer;
  std::swap(exceptions, exceptions_);
  torch_state_.swap_with_thread();
  if (context_) {
    phase_ = Phase::suspended;
  } else {
    end();
  }
}

void Fiber::suspend() {
  REHEARSAL_CHECK(phase_ == Phase::running, label_, int(phase_));
  REHEARSAL_CHECK(stack_->contains(__builtin_frame_address(0)), label_, "suspends elsewhere");
  save_registers(suspended_at_);
  void* frames = nullptr;
  announce_switch(&frames, resumer_bounds_);
  resumer_ = std::move(resumer_).resume();
  resumer_bounds_ = finish_switch(frames);
}

void Fiber::discard() {
  REHEARSAL_CHECK(phase_ == Phase::fresh, label_, int(phase_));
  body_ = nullptr;
  end();
}

void Fiber::abandon() {
  REHEARSAL_CHECK(phase_ == Phase::suspended, label_, int(phase_));
  // A context that is destroyed unwinds its stack: this one is not.
  union Left {
    explicit Left(boost::context::fiber&& of) : context(std::move(of)) {}
    ~Left() {}
    boost::context::fiber context;
  };
  const Left left(std::move(context_));
  stack_->leave();
  end();
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

boost::context::fiber Fiber::make_context() {
  auto start = [this](boost::context::fiber&& resumer) {
    resumer_ = std::move(resumer);
    resumer_bounds_ = finish_switch(nullptr);
    run_body();
    announce_switch(nullptr, resumer_bounds_);
    return std::move(resumer_);
  };
  return {std::allocator_arg, borrow(*stack_), std::move(start)};
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
  phase_ = Phase::done;
  stack_.reset();
}

}  // namespace rehearsal::fibers
