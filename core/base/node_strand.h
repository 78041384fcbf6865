#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/code_wait.h"
#include "core/base/error.h"
#include "core/base/monitor.h"
#include "core/base/mutants.h"
#include "core/base/quiet_death.h"
#include "core/base/result.h"
#include "core/base/runtime.h"
#include "core/base/trace.h"
#include "core/base/wait_table.h"

namespace rehearsal {

class DeviceLending;  // core/base/device_lending.h
class ExceptionHook;  // core/base/user_code.h
class NodeStrand;

// The label of the executions of Future::then.
inline constexpr std::string_view kContinuation = "continuation";

// Told on the strand that the execution which `maker` started made LibTorch's autograd nodes with
// the numbers from … to − 1 of this thread. For each thread in ascending order.
using NodesMade =
    std::function<void(const CausalId& maker, uint64_t thread, uint64_t from, uint64_t to)>;

// Passed to whoever ends a wait: on the strand, at most once has an effect.
class WaitHandle {
 public:
  WaitHandle(std::shared_ptr<NodeStrand> strand, WaitId id) : strand_(std::move(strand)), id_(id) {}
  // False once the wait has ended: what its stack owns is gone then.
  [[nodiscard]] bool lasts() const;
  void end() const;

 private:
  std::shared_ptr<NodeStrand> strand_;
  WaitId id_;
};

// The rules by which a wait in a primitive of the program's ends. A test leaves one out, to see it
// missed.
struct CodeWaitRules {
  bool ends_when_given_up = true;     // when nobody waits for its execution any more
  bool refused_when_given_up = true;  // one that would begin after that
  bool wake_counts = true;            // a wake is no failure, whatever ends the wait behind it
  bool ends_its_timer = true;
};

// User code that is no call being served: what started it, its name for people, the monitor that it
// is in except while it parks (null: none), how deeply it is nested in calls, and the autograd
// context that its calls are recorded in.
struct StackRun {
  CausalId id;
  std::string_view label;  // outlives the run
  std::shared_ptr<Monitor> monitor;
  uint32_t depth = 0;
  RecordedIn context = nullptr;
  std::optional<Hash128> stream = std::nullopt;  // of random numbers; none: that of the id's place
  // Not empty: values of the user's die on it, and what their destructors let out is told of these.
  // Lives for ever.
  std::string_view dying = {};
};

// User code that may not park: what started it, how deeply its calls are nested, the context that
// they are recorded in, and as in StackRun. `streams`: of devices; null: any.
struct InlineRun {
  CausalId id;
  uint32_t depth = 0;
  RecordedIn context = nullptr;
  std::optional<Hash128> stream = std::nullopt;
  Streams streams = nullptr;
};

// The way by which handles, contexts, futures and autograd nodes reach their node: its strand. It
// outlives the node; once closed, it drops and traces what is posted to the node.
class NodeStrand : public std::enable_shared_from_this<NodeStrand> {
 public:
  NodeStrand(std::shared_ptr<Runtime> runtime, const Executions* executions, Trace* trace,
             WorkerId self, std::string name, Seed seed);

  // Enters the strand, unless it is closed by then: then `task` is dropped unrun.
  template <class F>
  void post(F task);

  // Enters the strand, closed or not.
  void post_always(Task task);

  // Parks the calling stack until the handle that `arrange` is given, on the strand, is ended.
  // The error: would_park, or why the node ended. Throws NodeKilled. `what` is text for people.
  [[nodiscard]] Status wait(std::string_view what, const CausalId& id,
                            UniqueFunction<void(WaitHandle)> arrange);

  // The same. When nobody waits for the calling execution any more, and it is not shielded,
  // `given_up` is told so, on the strand, unless the wait has ended: it ends it.
  [[nodiscard]] Status wait_while_awaited(std::string_view what,
                                          UniqueFunction<void(WaitHandle)> arrange,
                                          UniqueFunction<void(const Error&)> given_up);

  // Parks the calling stack, which runs an execution, in a primitive of the program's, until
  // wake_by_code or the wait's own end; whether it was woken. Throws RpcError: would_park, why the
  // node ended, or `cancelled` when nobody waits for the execution any more; NodeKilled.
  bool wait_in_code(CodeWait& wait);
  // Ends such a wait. From code of this worker, off the strand; runs nothing. False if it has ended
  // already.
  bool wake_by_code(CodeWait& wait) { return runtime_->wake_by_code(wait.waiter); }

  // Nobody waits for this execution any more: its waits in primitives and those of
  // wait_while_awaited end. On the strand.
  void give_up(Execution& execution);
  // Before anything runs.
  void set_code_wait_rules(const CodeWaitRules& rules) { rules_ = rules; }

  // Lets others go on before the calling stack does, which runs an execution; at once where nothing
  // may park. Throws NodeKilled.
  void give_way();

  // Leaves the calling stack as it is, for ever: its node was killed, and no exception can leave
  // it.
  [[noreturn]] void stay();

  // The execution of the calling stack. On a thread that was not registered it parks for a moment
  // and throws: RpcError with why the node ended, else std::logic_error. Throws NodeKilled if the
  // node was killed.
  [[nodiscard]] Execution& running();
  [[nodiscard]] Execution* running_or_null() const {
    return executions_ != nullptr ? executions_->running() : nullptr;
  }

  // The node's own: what its executions make has it. Before the first of them.
  void set_incarnation(Incarnation incarnation) { incarnation_ = incarnation; }

  // The devices of this process. Before anything runs.
  void set_devices(const DevicesHere& devices) { devices_ = devices; }
  [[nodiscard]] const DevicesHere& devices() const { return devices_; }
  // By this they lend and borrow; null: they do neither. Set before anything runs.
  void set_lending(std::shared_ptr<DeviceLending> lending) { lending_ = std::move(lending); }
  [[nodiscard]] const std::shared_ptr<DeviceLending>& lending() const { return lending_; }
  // The points that the running execution's work on devices has come to; null: nothing runs here,
  // or there are no devices.
  [[nodiscard]] std::shared_ptr<const StreamMarks> mark_streams() const {
    if (devices_.count == 0 || running_or_null() == nullptr) return nullptr;
    if (mutants_.on(Mutant::future_has_no_points)) return nullptr;
    return StreamSet::current(devices_)->mark();
  }

  // The rules that are left out. Before anything runs.
  void set_mutants(const Mutants& mutants) { mutants_ = mutants; }
  [[nodiscard]] const Mutants& mutants() const { return mutants_; }

  // A new execution, started by `id`; shared, or in place.
  [[nodiscard]] std::shared_ptr<Execution> make_execution(const CausalId& id,
                                                          std::string_view label);
  void make_execution(std::optional<Execution>& place, const CausalId& id, std::string_view label);

  // Runs `body` inline as user code of a continuation; traced. On the strand.
  void run_continuation(InlineRun run, Task body);
  // The same, of one that holds values of the user's. It may not park, but they may when they die
  // with it; an exception that they let out is told.
  void run_holding_continuation(InlineRun run, Task body);

  // Runs `body` as user code that may park, on a stack of its own; traced. A shutdown waits for it.
  // Dropped unrun if the node ends first. `left`: called on the strand when a destructor has let an
  // exception out, so that the body never comes to its end. On the strand.
  void run_on_stack(const StackRun& run, Task body, Task left = nullptr);

  // Counts and traces an execution that runs, or has run. A shutdown waits for it. On the strand.
  void begin(const Execution& execution);
  void end(Execution& execution);

  // Has the calling thread run `execution`; see Executions::adopt_thread.
  [[nodiscard]] std::unique_ptr<AdoptedThread> adopt_thread(Execution& execution) const {
    return executions_ != nullptr ? executions_->adopt_thread(execution) : nullptr;
  }

  // Destroys `value` off the strand, where nothing may park: what is the node's own. On the strand.
  void release_later(std::shared_ptr<void> value);
  // The same, and then posts `then`; not if the node is killed before.
  void release_then(std::shared_ptr<void> value, Task then);

  // Destroys a user's value, whose destructor may do anything, as an execution of its own that
  // begins at once and may park; `label` (death_label) names it and lives for ever. A shutdown
  // waits for it. An exception that the destructor lets out is told (destructor_failed) and ends
  // nothing else. Does nothing for null. On the strand.
  void end_life(std::shared_ptr<void> value, std::string_view label);

  // Destroys `value` by whichever of the two fits its type. On the strand.
  template <class T>
  void let_go(std::shared_ptr<T> value) {
    if constexpr (kDiesQuietly<T>)
      release_later(std::move(value));
    else
      end_life(std::move(value), death_label<T>());
  }

  // From now on a shutdown waits for what is destroyed: it may hold references. On the strand.
  void count_releases() { counts_releases_ = true; }

  // On the strand. After close, waits end with `why` and later ones fail at once.
  void close(const Error& why);
  void kill();

  // The node is destroyed: what it was given to work with may be gone too, and is used no more.
  // A call through a handle that is left gets why the node ended. On the strand.
  void outlive_node();
  [[nodiscard]] bool closed() const { return why_closed_.has_value(); }
  [[nodiscard]] bool killed() const { return killed_; }
  [[nodiscard]] const Error& why_closed() const { return *why_closed_; }

  // `nodes_made` notes the nodes that a stack made so far when it enters the strand here: before
  // anybody can learn of tensors it made, and before it parks or ends.
  void set_on_nodes_made(NodesMade nodes_made) { on_nodes_made_ = std::move(nodes_made); }

  // The hook that completes errors of this node's user code; null: none. Before any of it runs.
  void set_exception_hook(const ExceptionHook* hook) { exception_hook_ = hook; }
  [[nodiscard]] const ExceptionHook* exception_hook() const { return exception_hook_; }

  [[nodiscard]] Runtime& runtime() const { return *runtime_; }
  [[nodiscard]] Trace& trace() const { return *trace_; }
  // Whether anybody hears what user code notes. Any thread.
  [[nodiscard]] bool hears_notes() const { return hears_notes_; }
  [[nodiscard]] WaitTable& waits() { return waits_; }
  [[nodiscard]] WorkerId self() const { return self_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  // Those that were asked for and have not ended; once it is closed, those that run on.
  [[nodiscard]] uint64_t continuations() const { return running_ + entering_; }

  // Runs when something has ended that a shutdown may wait for. On the strand.
  void set_on_progress(Task task) { on_progress_ = std::move(task); }
  void progressed() {
    if (on_progress_ && !closed()) on_progress_();
  }

  // Names a rare branch that was reached.
  void mark(std::string_view name) const;

 private:
  template <class F>
  struct Posting;

  void start(std::shared_ptr<Execution> execution, StackPlacement placement, Task body);
  [[nodiscard]] Status park_in(Wait& wait, std::string_view what, const CausalId& id,
                               UniqueFunction<void(WaitHandle)> arrange);
  [[nodiscard]] bool stack_may_park() const;
  [[nodiscard]] Error nobody_waits() const;
  [[nodiscard]] CausalId next_release();
  [[nodiscard]] std::shared_ptr<Execution> make_continuation(InlineRun run);
  // Has it outlive what its destructors let out, which is told of `dying`; `counted`: it has begun.
  // `after`: called on the strand when that has happened. Before it runs.
  void survive_destructors(const std::shared_ptr<Execution>& execution, std::string_view dying,
                           bool counted, Task after = nullptr);
  void tell_failed_destructor(const Execution& execution, std::string_view dying,
                              const std::exception_ptr& thrown);
  void note_dropped() const;
  void note_nodes();

  const std::shared_ptr<Runtime> runtime_;
  const Executions* executions_;  // null once the node is destroyed, as is the trace
  Trace* trace_;
  const bool hears_notes_;
  const WorkerId self_;
  const std::string name_;
  const Seed seed_;
  WaitTable waits_;
  CodeWaitRules rules_;
  MaybeError why_closed_;
  bool killed_ = false;
  uint64_t running_ = 0;   // continuations started and not ended
  uint64_t entering_ = 0;  // continuations that wait for their turn with a value
  uint64_t releases_ = 0;  // so far
  bool counts_releases_ = false;
  Task on_progress_;
  NodesMade on_nodes_made_;
  std::optional<Incarnation> incarnation_;
  DevicesHere devices_;
  std::shared_ptr<DeviceLending> lending_;
  Mutants mutants_;
  const ExceptionHook* exception_hook_ = nullptr;
};

// A template, so that a small closure stays small enough to be kept without an allocation.
template <class F>
struct NodeStrand::Posting {
  std::shared_ptr<NodeStrand> strand;
  F task;
  void operator()() {
    if (strand->closed()) return strand->note_dropped();
    task();
  }
  [[nodiscard]] uint64_t tag() const { return tag_of(task); }
};

template <class F>
void NodeStrand::post(F task) {
  note_nodes();
  runtime_->post(Posting<F>{shared_from_this(), std::move(task)});
}

}  // namespace rehearsal
