#include "record/recording_runtime.h"

#include <utility>

#include "core/base/check.h"

namespace rehearsal::record {
namespace {

// Destroys a closure as what it is a closure of: what it posts then has that source.
void destroy_as(const void* runtime, Source source, Task& task) {
  if (!task) return;
  StackMark mark{.runtime = runtime, .source = source};
  const ScopedMark scope(mark);
  task = nullptr;
}

}  // namespace

// A task on its way to the strand.
class RecordingRuntime::PostedTask {
 public:
  PostedTask(std::shared_ptr<RecordingRuntime> runtime, Posted input, Task task)
      : runtime_(std::move(runtime)), input_(std::move(input)), task_(std::move(task)) {}
  PostedTask(PostedTask&&) = default;
  ~PostedTask() {
    if (runtime_ != nullptr)
      destroy_as(runtime_.get(), {Source::Kind::entry_closure, entry_}, task_);
  }

  void operator()() {
    StackMark mark{
        .runtime = runtime_.get(), .source = {Source::Kind::strand, 0}, .on_strand = true};
    const ScopedMark scope(mark);
    entry_ = runtime_->recorder_->begin_entry(input_, task_);
    task_();
    runtime_->recorder_->end_entry();
  }

 private:
  std::shared_ptr<RecordingRuntime> runtime_;
  Posted input_;
  Task task_;
  uint64_t entry_ = 0;
};

class RecordingRuntime::TimerTask {
 public:
  TimerTask(std::shared_ptr<RecordingRuntime> runtime, uint64_t timer, Task task)
      : runtime_(std::move(runtime)), timer_(timer), task_(std::move(task)) {}
  TimerTask(TimerTask&&) = default;
  ~TimerTask() {
    if (runtime_ != nullptr)
      destroy_as(runtime_.get(), {Source::Kind::timer_closure, timer_}, task_);
  }

  void operator()() {
    runtime_->timers_.erase(timer_);
    runtime_->enter(task_, Fired{timer_});
  }

 private:
  std::shared_ptr<RecordingRuntime> runtime_;
  uint64_t timer_;
  Task task_;
};

// User code of an execution.
class RecordingRuntime::Body {
 public:
  Body(RecordingRuntime* runtime, uint64_t number, bool may_wait, Task body)
      : runtime_(runtime), number_(number), may_wait_(may_wait), body_(std::move(body)) {}

  void operator()() {
    StackMark mark{.runtime = runtime_, .source = {Source::Kind::execution, number_}};
    const ScopedMark scope(mark);
    if (may_wait_) runtime_->note_thread();
    Task body = std::move(body_);  // dies before the mark
    body();
  }

 private:
  RecordingRuntime* runtime_;
  uint64_t number_;
  bool may_wait_;
  Task body_;
};

StackMark* RecordingRuntime::mark() const {
  StackMark* mark = current_mark();
  return mark != nullptr && mark->runtime == this ? mark : nullptr;
}

void RecordingRuntime::note(Reading reading) const {
  if (StackMark* at = mark()) at->readings.push_back(std::move(reading));
}

Instant RecordingRuntime::now() const {
  StackMark* at = mark();
  if (at != nullptr && at->on_strand) return recorder_->now(*runtime_);
  const Instant now = runtime_->now();
  note({Reading::Kind::now, now.time_since_epoch().count(), {}});
  return now;
}

TimerId RecordingRuntime::call_at(Instant when, Task task) {
  const uint64_t number = ++timers_set_;
  timers_[number] = runtime_->call_at(when, TimerTask(shared_from_this(), number, std::move(task)));
  return TimerId{number};
}

void RecordingRuntime::cancel(TimerId timer) {
  const auto found = timers_.find(timer.value);
  if (found == timers_.end()) return;
  runtime_->cancel(found->second);
  timers_.erase(found);
}

void RecordingRuntime::post(Task task) {
  Posted input;
  if (StackMark* at = mark()) {
    input.from = at->source;
    input.readings = std::exchange(at->readings, {});
  }
  runtime_->post(PostedTask(shared_from_this(), std::move(input), std::move(task)));
}

void RecordingRuntime::execute(Execution& execution, StackPlacement placement, Task body) {
  const uint64_t number = ++executions_begun_;
  // A stack that is left as it is takes its marks with it.
  if (execution.when_terminated)
    execution.when_terminated = [this, number, told = std::move(execution.when_terminated)](
                                    const std::exception_ptr& thrown) mutable {
      told(thrown);
      const Source source{Source::Kind::execution, number};
      StackMark* at = current_mark();
      while (at != nullptr && !(at->runtime == this && at->source == source)) at = at->below;
      if (at != nullptr) set_current_mark(at->below);
    };
  const bool may_wait = placement != StackPlacement::inline_;
  runtime_->execute(execution, placement, Body(this, number, may_wait, std::move(body)));
}

ParkOutcome RecordingRuntime::park(Waiter& waiter) {
  StackMark* at = mark();
  if (at == nullptr) return runtime_->park(waiter);
  set_current_mark(at->below);
  const ParkOutcome outcome = runtime_->park(waiter);
  at->below = current_mark();
  set_current_mark(at);
  if (outcome == ParkOutcome::would_park) note({Reading::Kind::may_not_park, 0, {}});
  return outcome;
}

bool RecordingRuntime::wake_by_code(Waiter& waiter) {
  note_thread();
  const bool woken = runtime_->wake_by_code(waiter);
  if (woken && several_threads_) note({Reading::Kind::woke_beside_threads, 0, {}});
  return woken;
}

void RecordingRuntime::note_thread() {
  std::thread::id first;
  const std::thread::id me = std::this_thread::get_id();
  if (!first_thread_.compare_exchange_strong(first, me) && first != me) several_threads_ = true;
}

bool RecordingRuntime::may_park() const {
  const bool may = executions_.may_park();
  if (!may) note({Reading::Kind::may_not_park, 0, {}});
  return may;
}

}  // namespace rehearsal::record
