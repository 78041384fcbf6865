#include "real_net/runtime/real_runtime.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

#include "core/base/check.h"
#include "core/base/printable.h"
#include "real_net/runtime/engine_guard.h"
#include "real_net/runtime/processors.h"

namespace rehearsal::real {
namespace {

// How many times a holder takes what was queued meanwhile before it writes and releases.
constexpr int kBatchesPerFlush = 8;

// The same for timers; what is still due then runs when the strand is entered next.
constexpr int kTimersPerFlush = 256;

// Room for so many tasks stays after a burst.
constexpr size_t kTasksKept = 4096;

std::string no_memory_line(const std::string& worker) {
  return "rehearsal: " + (worker.empty() ? "the worker" : "worker '" + printable(worker) + "'") +
         " has no memory left, and ends: raise its limit (ulimit -v, memory.max of the control "
         "group), or have it hold less\n";
}

}  // namespace

RealRuntime::RealRuntime(const RuntimeOptions& options)
    : options_(options),
      no_memory_(no_memory_line(options.worker)),
      processors_(static_cast<int>(usable_processors())),
      spin_(options.spin_max) {
  set_up_thread();
  relief_ = std::thread([this] {
    try {
      relief_loop();
    } catch (const std::bad_alloc&) {
      leave_without_memory();
    }
  });
}

RealRuntime::~RealRuntime() { stop(); }

RealRuntime::PollingCounts RealRuntime::polling_counts() const {
  return {.looks = poller_.wait_count(),
          .yields = yields_.load(std::memory_order_relaxed),
          .sleeps = sleeps_.load(std::memory_order_relaxed),
          .wakes = wakes_.load(std::memory_order_relaxed)};
}

Instant RealRuntime::now() const {
  return Instant(std::chrono::steady_clock::now().time_since_epoch());
}

TimerId RealRuntime::call_at(Instant when, Task task) {
  ThreadRecord& me = *strand_holder_;
  const Instant before = timers_.earliest();
  const TimerId id = timers_.add(when, std::move(task));
  if (when < before && !me.polling) {
    const std::lock_guard lock(mutex_);
    role_.notify_poller(me.nudges);
  }
  return id;
}

void RealRuntime::cancel(TimerId timer) {
  Task task = timers_.cancel(timer);
  if (task) strand_holder_->garbage.push_back(std::move(task));
}

void RealRuntime::post(Task task) {
  if (strand_.queue(std::move(task))) run_held_strand();
}

void RealRuntime::run_held_strand() {
  ThreadRecord& me = threads_.current();
  do {
    run_strand(me);
    clean_up(me);
  } while (strand_.take_again());
  run_inline_bodies(me);
}

void RealRuntime::run_strand(ThreadRecord& me) noexcept {
  strand_holder_ = &me;
  me.on_strand = true;
  me.strand_state.swap_with_thread();
  try {
    run_tasks(me);
  } catch (const std::bad_alloc&) {
    leave_without_memory();
  }
  me.strand_state.swap_with_thread();
  me.on_strand = false;
  strand_.release();
}

void RealRuntime::run_tasks(ThreadRecord& me) {
  const fibers::ScopedExecution none(nullptr);
  for (int i = 0; i < kBatchesPerFlush && strand_.take_batch(me.batch); ++i) {
    for (Task& task : me.batch) {
      task();
      me.garbage.push_back(std::move(task));
    }
    me.batch.clear();
    if (me.batch.capacity() > kTasksKept) me.batch.shrink_to_fit();
  }
  run_due_timers(me);
  if (flush_) flush_();
}

void RealRuntime::leave_without_memory() const {
  [[maybe_unused]] const ssize_t told = write(STDERR_FILENO, no_memory_.data(), no_memory_.size());
  std::_Exit(1);
}

void RealRuntime::run_due_timers(ThreadRecord& me) {
  if (timers_.earliest() == Instant::max()) return;
  const Instant present = now();
  for (int i = 0; i < kTimersPerFlush; ++i) {
    Task task = timers_.take_due(present);
    if (!task) return;
    task();
    me.garbage.push_back(std::move(task));
  }
}

// Wakes whom the strand's tasks woke, and destroys closures: they may own anything, and may post.
void RealRuntime::clean_up(ThreadRecord& me) {
  if (!me.nudges.empty()) carry_out(me.nudges);
  if (me.discarding) return;
  me.discarding = true;
  while (!me.garbage.empty()) {
    me.dying.swap(me.garbage);
    me.dying.clear();
    if (me.dying.capacity() > kTasksKept) me.dying.shrink_to_fit();
  }
  me.discarding = false;
}

// A thread that waits runs them one by one from its waiting loop instead. The outer entry runs the
// bodies that a nested one adds.
void RealRuntime::run_inline_bodies(ThreadRecord& me) {
  if (me.looks_again || me.in_inline || me.beginning || me.discarding) return;
  while (!me.inline_bodies.empty()) {
    InlineBody body = std::move(me.inline_bodies.front());
    me.inline_bodies.pop_front();
    run_inline(me, std::move(body));
  }
}

void RealRuntime::run_inline(ThreadRecord& me, InlineBody inline_body) {
  REHEARSAL_CHECK(!me.in_inline);
  if (inline_body.has_stack) return run_at_once(me, std::move(inline_body));
  if (killed_) return;
  me.in_inline = true;
  me.inline_state.swap_with_thread();
  std::optional<CurrentDevices> devices;
  if (options_.devices.count > 0) devices.emplace(options_.devices).swap_with_thread();
  {
    const fibers::ScopedExecution scope(inline_body.execution);
    try {
      inline_body.body();
    } catch (const NodeKilled&) {
    }
    // Its objects may post as they die: that work runs after it, not on top of it.
    inline_body.body = nullptr;
  }
  if (devices) devices->swap_with_thread();
  me.inline_state.swap_with_thread();
  me.in_inline = false;
}

void RealRuntime::execute(Execution& execution, StackPlacement placement, Task body) {
  ThreadRecord& me = *strand_holder_;
  if (placement == StackPlacement::pool || (placement == StackPlacement::at_once && is_a_guest(me)))
    return start_execution(record_of(execution, std::move(body)), me.nudges);
  me.inline_bodies.push_back({&execution, std::move(body), placement == StackPlacement::at_once});
}

Execution* RealRuntime::running() const { return fibers::running_execution(); }

bool RealRuntime::may_park() const {
  const ThreadRecord* me = threads_.find();
  if (me != nullptr && (me->on_strand || me->in_inline || me->polling)) return false;
  return !inside_torch_engine();
}

void RealRuntime::kill() {
  Nudges nudges;
  Lock lock(mutex_);
  killed_ = true;
  threads_.for_each([&](ThreadRecord& record) {
    if (record.parked.waiter != nullptr) role_.notify(record.seat, nudges);
    for (const auto& fiber : record.live) {
      if (fiber->parked.waiter == nullptr || !ends_park(*fiber->parked.waiter)) continue;
      fiber->parked.waiter->slot = nullptr;
      fiber->parked.waiter = nullptr;
      record.runnable.push_back(fiber.get());
    }
    if (!record.runnable.empty()) role_.notify(record.seat, nudges);
  });
  try_stacks_again(nudges);
  unlock_and_carry_out(lock, nudges);
  drop_timers();
}

void RealRuntime::drop_timers() {
  post([this] {
    for (Task& task : timers_.clear()) strand_holder_->garbage.push_back(std::move(task));
  });
}

void RealRuntime::stop() {
  {
    Nudges nudges;
    Lock lock(mutex_);
    REHEARSAL_CHECK(live_ == 0, live_, "executions are live");
    stopping_ = true;
    role_.notify(relief_seat_, nudges);
    for (ThreadRecord* host : hosts_) role_.notify(host->seat, nudges);
    unlock_and_carry_out(lock, nudges);
  }
  if (relief_.joinable()) relief_.join();
  for (std::thread& thread : pool_threads_) thread.join();
  pool_threads_.clear();
  drop_timers();
  run_left_bodies();
}

// Runs the bodies that the runtime's own threads left when they ended. A body may own this runtime:
// without this, neither would ever go.
void RealRuntime::run_left_bodies() {
  ThreadRecord& me = threads_.current();
  {
    const std::lock_guard lock(mutex_);
    for (InlineBody& body : left_bodies_) me.inline_bodies.push_back(std::move(body));
    left_bodies_.clear();
  }
  run_inline_bodies(me);
}

namespace {

class UserThread final : public AdoptedThread {
 public:
  explicit UserThread(Execution& execution) : execution_(&execution) {}

 private:
  const fibers::ScopedExecution execution_;
};

}  // namespace

std::unique_ptr<AdoptedThread> RealRuntime::adopt_thread(Execution& execution) const {
  set_up_thread();
  return std::make_unique<UserThread>(execution);
}

RealRuntime::MainGuard::MainGuard(RealRuntime& runtime, Execution& execution)
    : runtime_(runtime), hosts_(runtime.options_.worker_threads == 0), execution_(&execution) {
  runtime_.set_up_thread();
  runtime_.threads_.current().comes_again = true;
  ThreadRecord& me = runtime_.threads_.current();
  const std::lock_guard lock(runtime_.mutex_);
  runtime_.main_ = &me;
  if (hosts_) {
    REHEARSAL_CHECK(runtime_.hosts_.empty());
    runtime_.hosts_.push_back(&me);
  }
  Nudges nobody_sleeps;
  for (auto& fiber : runtime_.unassigned_) runtime_.assign(me, std::move(fiber), nobody_sleeps);
  runtime_.unassigned_.clear();
}

RealRuntime::MainGuard::~MainGuard() {
  const std::lock_guard lock(runtime_.mutex_);
  if (runtime_.main_ == nullptr || !runtime_.main_->live.empty()) return;
  runtime_.main_ = nullptr;
  if (hosts_) runtime_.hosts_.clear();
}

void RealRuntime::set_up_thread() const { at::set_num_threads(options_.torch_threads); }

}  // namespace rehearsal::real
