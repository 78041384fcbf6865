#include <algorithm>
#include <cstdio>
#include <new>
#include <system_error>

#include "core/base/check.h"
#include "core/base/printable.h"
#include "real_net/runtime/real_runtime.h"

// Executions of a RealRuntime: fibers, each pinned to the thread on which it starts.
namespace rehearsal::real {
namespace {

// From one look for a stack to the next.
constexpr Duration kStacksApart = std::chrono::milliseconds(100);

}  // namespace

std::unique_ptr<FiberRecord> RealRuntime::record_of(Execution& execution, Task body) {
  auto record = std::make_unique<FiberRecord>();
  record->execution = &execution;
  record->label = execution.label();
  record->body = std::move(body);
  return record;
}

// A stack that parks goes on when its thread waits next: a thread of the user's may never do so.
// Once this runtime stops nothing parks, and nobody else is left.
bool RealRuntime::is_a_guest(const ThreadRecord& me) {
  if (me.comes_again) return false;
  const std::lock_guard lock(mutex_);
  return !stopping_;
}

void RealRuntime::start_execution(std::unique_ptr<FiberRecord> fiber, Nudges& nudges) {
  Lock lock(mutex_);
  if (killed_) {
    lock.unlock();
    strand_holder_->garbage.push_back(std::move(fiber->body));
    return;
  }
  ThreadRecord* host = choose_host(lock);
  unassigned_.push_back(std::move(fiber));
  if (host == nullptr) return;
  for (auto& waiting : unassigned_) assign(*host, std::move(waiting), nudges);
  unassigned_.clear();
}

// The thread for a new execution: one without any, else a new one while there may be more, else
// the one with the fewest. Null only while there is no main thread to host them.
ThreadRecord* RealRuntime::choose_host(Lock& lock) {
  const auto least = std::min_element(
      hosts_.begin(), hosts_.end(),
      [](const ThreadRecord* a, const ThreadRecord* b) { return a->live.size() < b->live.size(); });
  if (least != hosts_.end() && (*least)->live.empty()) return *least;
  if (hosts_.size() < options_.worker_threads) return start_pool_thread(lock);
  return least != hosts_.end() ? *least : nullptr;
}

ThreadRecord* RealRuntime::start_pool_thread(Lock& lock) {
  ThreadRecord& record = threads_.reserve();
  record.in_pool = true;
  lock.unlock();
  try {
    pool_threads_.emplace_back([this, &record] {
      try {
        pool_loop(record);
      } catch (const std::bad_alloc&) {
        leave_without_memory();
      }
    });
  } catch (const std::system_error&) {
    // The system has no room for a thread: the ones that run have to do, or else the main one.
    lock.lock();
    return hosts_.empty() ? main_ : hosts_.front();
  }
  lock.lock();
  hosts_.push_back(&record);
  return &record;
}

void RealRuntime::assign(ThreadRecord& host, std::unique_ptr<FiberRecord> fiber, Nudges& nudges) {
  host.runnable.push_back(fiber.get());
  pin(host, std::move(fiber));
  role_.notify(host.seat, nudges);
}

// Under the lock.
void RealRuntime::pin(ThreadRecord& host, std::unique_ptr<FiberRecord> fiber) {
  fiber->parked.thread = &host;
  fiber->parked.fiber = fiber.get();
  fiber->place = host.live.size();
  host.live.push_back(std::move(fiber));
  ++live_;
}

// On top of what runs here; it goes on in this thread's waiting loop if it parks. Bodies that it
// adds until then run behind it, not on top of it.
void RealRuntime::run_at_once(ThreadRecord& me, InlineBody body) {
  std::unique_ptr<FiberRecord> record = record_of(*body.execution, std::move(body.body));
  FiberRecord& fiber = *record;
  {
    const std::lock_guard lock(mutex_);
    pin(me, std::move(record));
  }
  const bool outer = std::exchange(me.beginning, true);
  resume_fiber(me, fiber);
  me.beginning = outer;
}

void RealRuntime::pool_loop(ThreadRecord& me) {
  threads_.bind(me);
  me.comes_again = true;
  set_up_thread();
  pthread_setname_np(pthread_self(), "executions");
  wait_here(me, [&] { return stopping_; });
}

void RealRuntime::resume_fiber(ThreadRecord& me, FiberRecord& fiber) {
  if (fiber.fiber == nullptr && !make_fiber(me, fiber)) return;
  FiberRecord* const outer = std::exchange(me.running, &fiber);
  const bool looked_again = std::exchange(me.looks_again, false);
  const int computing = outer == nullptr ? 1 : 0;
  computing_.fetch_add(computing, std::memory_order_relaxed);
  {
    const fibers::ScopedExecution scope(fiber.execution);
    if (fiber.devices) fiber.devices->swap_with_thread();
    fiber.fiber->resume();
    if (fiber.devices) fiber.devices->swap_with_thread();
  }
  computing_.fetch_sub(computing, std::memory_order_relaxed);
  me.looks_again = looked_again;
  me.running = outer;
  if (fiber.fiber->left()) fiber.fiber->abandon();
  if (fiber.fiber->done()) end_fiber(me, fiber);
}

// False if there is no stack for it now, or if it is not to run any more.
bool RealRuntime::make_fiber(ThreadRecord& me, FiberRecord& fiber) {
  {
    const std::lock_guard lock(mutex_);
    if (!killed_ && me.stacks == nullptr) me.stacks = std::make_unique<fibers::StackPool>();
    if (killed_) fiber.body = nullptr;
  }
  if (!fiber.body) {
    end_fiber(me, fiber);
    return false;
  }
  Result<fibers::Stack> stack = me.stacks->take();
  if (!stack.ok()) {
    wait_for_stack(me, fiber, stack.error());
    return false;
  }
  fiber.fiber = std::make_unique<fibers::Fiber>(fiber.label, std::move(stack).value(),
                                                [body = std::move(fiber.body)]() mutable {
                                                  try {
                                                    body();
                                                  } catch (const NodeKilled&) {
                                                  }
                                                });
  if (options_.devices.count > 0) fiber.devices.emplace(options_.devices);
  fiber.fiber->set_on_terminate(
      [&fiber] { return fiber.execution->terminated_by(std::current_exception()); });
  return true;
}

// Until another execution ends, or for a while: memory may come back from elsewhere.
void RealRuntime::wait_for_stack(ThreadRecord& me, FiberRecord& fiber, const Error& why) {
  if (!std::exchange(fiber.told_stackless, true))
    std::fprintf(stderr, "rehearsal: '%s' waits for a stack: %s\n", printable(fiber.label).c_str(),
                 why.text.c_str());
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    (killed_ ? me.runnable : me.stackless).push_back(&fiber);
    if (!killed_) first = stackless_++ == 0;
  }
  if (!first) return;
  post([this] {
    call_at(now() + kStacksApart, [this] {
      const std::lock_guard lock(mutex_);
      try_stacks_again(strand_holder_->nudges);
    });
  });
}

// Under the lock.
void RealRuntime::try_stacks_again(Nudges& nudges) {
  if (stackless_ == 0) return;
  threads_.for_each([&](ThreadRecord& host) {
    for (FiberRecord* waiting : host.stackless) host.runnable.push_back(waiting);
    if (!host.stackless.empty()) role_.notify(host.seat, nudges);
    host.stackless.clear();
  });
  stackless_ = 0;
}

void RealRuntime::end_fiber(ThreadRecord& me, FiberRecord& fiber) {
  std::exception_ptr escaped = fiber.fiber != nullptr ? fiber.fiber->take_exception() : nullptr;
  if (escaped != nullptr) std::rethrow_exception(escaped);
  std::unique_ptr<FiberRecord> ended;  // destroyed off the lock
  Nudges nudges;
  Lock lock(mutex_);
  const size_t place = fiber.place;
  ended = std::move(me.live[place]);
  if (place + 1 != me.live.size()) {
    me.live[place] = std::move(me.live.back());
    me.live[place]->place = place;
  }
  me.live.pop_back();
  --live_;
  for (PollingRole::Seat* watcher : idle_watchers_) role_.notify(*watcher, nudges);
  try_stacks_again(nudges);
  unlock_and_carry_out(lock, nudges);
}

size_t RealRuntime::live_executions() const {
  const std::lock_guard lock(mutex_);
  return live_ + unassigned_.size();
}

std::vector<std::string> RealRuntime::live_labels() const {
  std::vector<std::string> labels;
  const std::lock_guard lock(mutex_);
  for (const auto& fiber : unassigned_) labels.push_back(fiber->label);
  threads_.for_each([&](const ThreadRecord& host) {
    for (const auto& fiber : host.live) labels.push_back(fiber->label);
  });
  return labels;
}

bool RealRuntime::wait_for_executions(Duration limit) {
  ThreadRecord& me = threads_.current();
  const Instant deadline = now() + limit;
  auto timer = std::make_shared<TimerId>();
  post([this, &me, timer, deadline] {
    *timer = call_at(deadline, [this, &me] {
      const std::lock_guard lock(mutex_);
      role_.notify(me.seat, strand_holder_->nudges);
    });
  });
  {
    const std::lock_guard lock(mutex_);
    idle_watchers_.push_back(&me.seat);
  }
  wait_here(me, [&] { return live_ == 0 || now() >= deadline; });
  {
    const std::lock_guard lock(mutex_);
    std::erase(idle_watchers_, &me.seat);
  }
  post([this, timer] { cancel(*timer); });
  return live_executions() == 0;
}

}  // namespace rehearsal::real
