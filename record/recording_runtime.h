#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "core/base/runtime.h"
#include "record/recorder.h"
#include "record/stack_mark.h"

namespace rehearsal::record {

// A Runtime that hands everything on to another one and has a Recorder note what enters the strand.
// It keeps the contract: what a node can see of it differs in one thing only, that the clock stands
// still while a task of the strand runs, as it does in virtual time.
//
// Each task that a node posts is noted when the strand takes it, with who posted it and what that
// stack was told since it last posted. So nothing off the strand is shared between threads.
class RecordingRuntime final : public Runtime,
                               public Executions,
                               public std::enable_shared_from_this<RecordingRuntime> {
 public:
  // `executions` outlives this and belongs to `runtime`.
  RecordingRuntime(std::shared_ptr<Runtime> runtime, const Executions& executions,
                   std::shared_ptr<Recorder> recorder)
      : runtime_(std::move(runtime)), executions_(executions), recorder_(std::move(recorder)) {}

  [[nodiscard]] Instant now() const override;
  TimerId call_at(Instant when, Task task) override;
  void cancel(TimerId timer) override;
  void post(Task task) override;
  void execute(Execution& execution, StackPlacement placement, Task body) override;
  [[nodiscard]] ParkOutcome park(Waiter& waiter) override;
  void wake(Waiter& waiter) override { runtime_->wake(waiter); }
  bool wake_by_code(Waiter& waiter) override;

  [[nodiscard]] Execution* running() const override { return executions_.running(); }
  [[nodiscard]] uint64_t& next_node() const override { return executions_.next_node(); }
  [[nodiscard]] bool may_park() const override;

  // Runs the worker's main on the calling stack.
  template <class Body>
  auto run_main(Body body) {
    StackMark mark{.runtime = this, .source = {Source::Kind::main, 0}};
    const ScopedMark scope(mark);
    note_thread();
    return body();
  }

  // On the strand: `body` is what the node makes of `input`, which is no task of its own.
  template <class Body, class... Input>
  void enter(Body&& body, const Input&... input) {
    StackMark mark{.runtime = this, .source = {Source::Kind::strand, 0}, .on_strand = true};
    const ScopedMark scope(mark);
    recorder_->begin_entry(input...);
    body();
    recorder_->end_entry();
  }

  // Has the calling stack take this along with its next task.
  void note(Reading reading) const;

  [[nodiscard]] Recorder& recorder() { return *recorder_; }

 private:
  class PostedTask;
  class TimerTask;
  class Body;
  [[nodiscard]] StackMark* mark() const;
  void note_thread();

  const std::shared_ptr<Runtime> runtime_;
  const Executions& executions_;
  const std::shared_ptr<Recorder> recorder_;

  // Whether stacks that may wait, or wake each other, run on more threads than one.
  std::atomic<std::thread::id> first_thread_{};
  std::atomic<bool> several_threads_ = false;

  // The strand's.
  uint64_t executions_begun_ = 0;
  uint64_t timers_set_ = 0;
  std::map<uint64_t, TimerId> timers_;  // that have not fired, by our number
};

}  // namespace rehearsal::record
