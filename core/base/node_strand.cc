#include "core/base/node_strand.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <stdexcept>

#include "core/base/check.h"
#include "core/base/engine_threads.h"
#include "core/base/user_code.h"

namespace rehearsal {
namespace {

// Distinguishes the paths of releases from all others.
constexpr uint64_t kReleases = 0x72656c6561736573;

}  // namespace

bool WaitHandle::lasts() const { return strand_->waits().lasts(id_); }
void WaitHandle::end() const { strand_->waits().end(id_); }

NodeStrand::NodeStrand(std::shared_ptr<Runtime> runtime, const Executions* executions, Trace* trace,
                       WorkerId self, std::string name, Seed seed)
    : runtime_(std::move(runtime)),
      executions_(executions),
      trace_(trace),
      hears_notes_(trace->hears_notes()),
      self_(self),
      name_(std::move(name)),
      seed_(seed),
      waits_(*runtime_, *trace_, self_) {}

void NodeStrand::note_nodes() {
  if (killed_) return;
  Execution* const running = running_or_null();
  if (running == nullptr) return;
  const uint64_t next = at::sequence_number::peek();
  const uint64_t from = std::exchange(executions_->next_node(), next);
  if (from == next) return;
  runtime_->post([strand = shared_from_this(), maker = running->started_by(),
                  thread = at::RecordFunction::currentThreadId(), from, next] {
    if (strand->closed() || !strand->on_nodes_made_) return;
    strand->on_nodes_made_(maker, thread, from, next);
  });
}

void NodeStrand::post_always(Task task) {
  note_nodes();
  runtime_->post(std::move(task));
}

void NodeStrand::note_dropped() const {
  if (!killed_) mark("posted to a closed mailbox");
}

bool NodeStrand::stack_may_park() const {
  const Execution* const running = executions_->running();
  return (running == nullptr || !running->never_parks) && executions_->may_park();
}

Status NodeStrand::wait(std::string_view what, const CausalId& id,
                        UniqueFunction<void(WaitHandle)> arrange) {
  Wait wait;
  return park_in(wait, what, id, std::move(arrange));
}

Status NodeStrand::wait_while_awaited(std::string_view what,
                                      UniqueFunction<void(WaitHandle)> arrange,
                                      UniqueFunction<void(const Error&)> given_up) {
  Wait wait;
  wait.given_up = &given_up;
  return park_in(wait, what, {}, [&](WaitHandle handle) {
    const Execution* const execution = wait.execution;
    wait.shielded = execution == nullptr || execution->shielded_until.has_value();
    arrange(std::move(handle));
    if (!wait.shielded && execution->waits_end && rules_.refused_when_given_up)
      given_up(nobody_waits());
  });
}

Status NodeStrand::park_in(Wait& wait, std::string_view what, const CausalId& id,
                           UniqueFunction<void(WaitHandle)> arrange) {
  if (executions_ == nullptr) return *why_closed_;
  if (!stack_may_park())
    return Error{.kind = ErrorKind::would_park,
                 .text = "waiting for " + std::string(what) +
                         " here would stop what it waits for: use the asynchronous form and `then`",
                 .worker = name_};
  wait.execution = executions_->running();
  if (wait.execution != nullptr) wait.execution->gave_way = 0;
  wait.what = what;
  wait.id = id;
  note_nodes();
  runtime_->post([this, &wait, &arrange] {
    if (killed_) return;  // The Runtime ends the park.
    if (!closed()) return arrange(WaitHandle(shared_from_this(), waits_.begin(wait)));
    // Its execution keeps its monitor: nobody may start or go on in there any more.
    wait.failure = *why_closed_;
    runtime_->wake(wait.waiter);
  });
  const ParkOutcome outcome = runtime_->park(wait.waiter);
  if (outcome == ParkOutcome::killed) throw NodeKilled{};
  REHEARSAL_CHECK(outcome == ParkOutcome::woken);
  if (wait.failure) return *wait.failure;
  return Unit{};
}

// The stack first waits for the code that wakes it, or for the strand to end the wait; then for
// the strand, which lets it go on once its execution has its monitor again.
bool NodeStrand::wait_in_code(CodeWait& code) {
  if (executions_ == nullptr) throw RpcError(*why_closed_);
  if (!stack_may_park())
    throw RpcError({.kind = ErrorKind::would_park,
                    .text = "waiting in " + code.describe() +
                            " here would stop what it waits for: this code runs to its end. Use "
                            "`then` on a stack, or an asynchronous form",
                    .worker = name_});
  Execution& execution = *executions_->running();
  execution.gave_way = 0;
  Wait wait;
  wait.execution = &execution;
  wait.code = &code;
  wait.shielded = execution.shielded_until.has_value();
  WaitId id;
  std::optional<TimerId> timer;
  note_nodes();
  runtime_->post([this, &wait, &id, &timer] {
    if (killed_) return;  // The Runtime ends the park.
    wait.since = runtime_->now();
    id = waits_.begin(wait);
    if (closed()) return waits_.fail(id, *why_closed_);
    if (wait.execution->waits_end && !wait.shielded && rules_.refused_when_given_up)
      return waits_.fail(id, nobody_waits());
    if (wait.code->until)
      timer = runtime_->call_at(*wait.code->until, [this, id] { waits_.end(id); });
  });
  if (runtime_->park(code.waiter) == ParkOutcome::killed) throw NodeKilled{};
  runtime_->post([this, &id, &timer] {
    if (timer && rules_.ends_its_timer) runtime_->cancel(*timer);
    waits_.end(id);
  });
  if (runtime_->park(wait.waiter) == ParkOutcome::killed && code.may_throw()) throw NodeKilled{};
  const bool woken = code.waiter.by_code && rules_.wake_counts;
  if (wait.failure && !woken) throw RpcError(*wait.failure);
  return code.waiter.by_code;
}

Error NodeStrand::nobody_waits() const {
  return {.kind = ErrorKind::cancelled,
          .text = "nobody waits any more for the call that waited here",
          .worker = name_};
}

void NodeStrand::give_up(Execution& execution) {
  execution.waits_end = true;
  if (rules_.ends_when_given_up) waits_.give_up(execution, nobody_waits());
}

// All that is due comes first. Code that gives way again and again, as one that tries a lock, does
// so for longer and longer: the thing it tries for may take a while.
void NodeStrand::give_way() {
  constexpr Duration kLeast = std::chrono::microseconds(1);
  constexpr uint32_t kEven = 16;
  constexpr uint32_t kDoublingsMax = 10;
  if (executions_ == nullptr || !stack_may_park()) return;
  const uint32_t before = executions_->running()->gave_way++;
  const Duration length = kLeast * (1U << std::min(before / kEven, kDoublingsMax));
  Waiter turn;
  runtime_->post([this, &turn, length] {
    if (killed_) return;  // The Runtime ends the park.
    runtime_->call_at(runtime_->now() + length, [this, &turn] { runtime_->wake(turn); });
  });
  if (runtime_->park(turn) == ParkOutcome::killed) throw NodeKilled{};
}

void NodeStrand::stay() {
  Waiter never(AtKill::stays);
  for (;;) static_cast<void>(runtime_->park(never));
}

Execution& NodeStrand::running() {
  if (executions_ == nullptr) throw RpcError(*why_closed_);
  Execution* const execution = executions_->running();  // Counts code that was killed.
  if (killed_) throw NodeKilled{};
  if (execution != nullptr) return *execution;
  // Only the strand knows whether the node has ended. Where nothing parks, the strand is free.
  const Status open = wait("the worker's state", {}, [](WaitHandle wait) { wait.end(); });
  const bool nothing_parks = !open.ok() && open.error().kind == ErrorKind::would_park;
  if (nothing_parks && closed()) throw RpcError(*why_closed_);
  if (!open.ok() && !nothing_parks) throw RpcError(open.error());
  throw std::logic_error("this thread is not known to worker '" + name_ +
                         "': keep what worker.register_thread(\"a name\") returns on it while it "
                         "calls");
}

std::shared_ptr<Execution> NodeStrand::make_execution(const CausalId& id, std::string_view label) {
  auto execution = std::make_shared<Execution>(id, label, seed_);
  execution->strand = this;
  if (incarnation_) execution->set_incarnation(*incarnation_);
  return execution;
}

void NodeStrand::make_execution(std::optional<Execution>& place, const CausalId& id,
                                std::string_view label) {
  place.emplace(id, label, seed_);
  place->strand = this;
  if (incarnation_) place->set_incarnation(*incarnation_);
}

void NodeStrand::run_continuation(InlineRun run, Task body) {
  if (killed_) return;
  start(make_continuation(std::move(run)), StackPlacement::inline_, std::move(body));
}

void NodeStrand::run_holding_continuation(InlineRun run, Task body) {
  if (killed_) return;
  auto execution = make_continuation(std::move(run));
  execution->never_parks = true;
  survive_destructors(execution, kContinuation, /*counted=*/true);
  start(std::move(execution), StackPlacement::at_once, std::move(body));
}

std::shared_ptr<Execution> NodeStrand::make_continuation(InlineRun run) {
  auto execution = make_execution(run.id, kContinuation);
  execution->set_stream(run.stream);
  if (!mutants_.on(Mutant::continuation_forgets_depth)) execution->depth = run.depth;
  if (mutants_.on(Mutant::continuation_in_any_streams)) run.streams = nullptr;
  execution->streams =
      run.streams != nullptr ? std::move(run.streams) : StreamSet::from_pool(devices_);
  execution->context = std::move(run.context);
  return execution;
}

void NodeStrand::run_on_stack(const StackRun& run, Task body, Task left) {
  auto execution = make_execution(run.id, run.label);
  execution->set_stream(run.stream);
  execution->depth = run.depth;
  execution->context = run.context;
  execution->streams = run.monitor != nullptr && run.monitor->streams() != nullptr
                           ? run.monitor->streams()
                           : StreamSet::from_pool(devices_);
  if (!run.dying.empty())
    survive_destructors(execution, run.dying, /*counted=*/true, std::move(left));
  if (run.monitor == nullptr)
    return start(std::move(execution), StackPlacement::pool, std::move(body));
  ++entering_;
  run.monitor->enter([strand = shared_from_this(), execution = std::move(execution),
                      monitor = run.monitor, body = std::move(body)]() mutable {
    // The node ended while it waited for its turn.
    if (strand->closed()) {
      monitor->leave();
      return strand->release_later(std::make_shared<Task>(std::move(body)));
    }
    --strand->entering_;
    execution->monitor = std::move(monitor);
    strand->start(std::move(execution), StackPlacement::pool, std::move(body));
  });
}

void NodeStrand::begin(const Execution& execution) {
  ++running_;
  trace_->on_event({.kind = EventKind::execution_started,
                    .worker = self_,
                    .id = execution.started_by(),
                    .text = execution.label()});
}

void NodeStrand::start(std::shared_ptr<Execution> execution, StackPlacement placement, Task body) {
  Execution& running = *execution;
  begin(running);
  runtime_->execute(running, placement,
                    [strand = shared_from_this(), execution = std::move(execution),
                     body = std::move(body)]() mutable {
                      {
                        const InStreams in(execution->streams);
                        const EngineThreads engine(strand->devices_);
                        if (!strand->killed_) body();
                        execution->never_parks = false;
                        body = nullptr;  // The references in it die before it has ended.
                      }
                      strand->post_always([strand, execution] { strand->end(*execution); });
                    });
}

void NodeStrand::end(Execution& execution) {
  --running_;
  if (execution.monitor && !killed_) std::exchange(execution.monitor, nullptr)->leave();
  if (trace_ == nullptr) return;
  trace_->on_event({.kind = EventKind::execution_ended,
                    .worker = self_,
                    .id = execution.started_by(),
                    .text = execution.label()});
  progressed();
}

void NodeStrand::release_later(std::shared_ptr<void> value) {
  if (value == nullptr) return;
  auto execution = make_execution(next_release(), "release");
  Execution& running = *execution;
  const bool counted = counts_releases_ && !closed();
  if (counted) ++running_;
  runtime_->execute(running, StackPlacement::inline_,
                    [execution = std::move(execution), value = std::move(value), devices = devices_,
                     strand = counted ? shared_from_this() : nullptr]() mutable {
                      const EngineThreads engine(devices);
                      value.reset();
                      if (strand == nullptr) return;
                      strand->post_always([strand] {
                        --strand->running_;
                        strand->progressed();
                      });
                    });
}

void NodeStrand::release_then(std::shared_ptr<void> value, Task then) {
  auto execution = make_execution(next_release(), "release");
  Execution& running = *execution;
  runtime_->execute(running, StackPlacement::inline_,
                    [strand = shared_from_this(), execution = std::move(execution),
                     value = std::move(value), then = std::move(then)]() mutable {
                      const EngineThreads engine(strand->devices_);
                      value.reset();
                      strand->post(std::move(then));
                    });
}

// Destructors of users may call: no two releases, of whichever life, may give the same ids.
CausalId NodeStrand::next_release() {
  return {{}, {kReleases, incarnation_.value_or(Incarnation{}).value}, releases_++};
}

void NodeStrand::end_life(std::shared_ptr<void> value, std::string_view label) {
  if (value == nullptr) return;
  std::shared_ptr<Execution> execution = make_execution(next_release(), label);
  Execution& running = *execution;
  const bool lives = !closed();
  if (lives) begin(running);
  survive_destructors(execution, label.substr(1), lives);
  runtime_->execute(running, StackPlacement::at_once,
                    [strand = shared_from_this(), execution = std::move(execution),
                     value = std::move(value), lives]() mutable {
                      const EngineThreads engine(strand->devices_);
                      value.reset();
                      if (lives)
                        strand->post_always([strand, execution] { strand->end(*execution); });
                    });
}

void NodeStrand::survive_destructors(const std::shared_ptr<Execution>& execution,
                                     std::string_view dying, bool counted, Task after) {
  // The stack that is left keeps its execution for ever.
  execution->when_terminated = [this, weak = std::weak_ptr(execution), dying, counted,
                                after =
                                    std::move(after)](const std::exception_ptr& thrown) mutable {
    post_always([strand = shared_from_this(), execution = weak.lock(), dying, counted, thrown,
                 after = std::move(after)]() mutable {
      strand->tell_failed_destructor(*execution, dying, thrown);
      if (counted) strand->end(*execution);
      if (after && !strand->closed()) after();
    });
  };
}

void NodeStrand::tell_failed_destructor(const Execution& execution, std::string_view dying,
                                        const std::exception_ptr& thrown) {
  if (trace_ == nullptr) return;
  std::string why;
  try {
    std::rethrow_exception(thrown);
  } catch (const NodeKilled&) {
    return;
  } catch (...) {
    why = to_string(current_exception_as_error(name_, execution.label(), exception_hook_));
  }
  trace_->on_event({.kind = EventKind::destructor_failed,
                    .worker = self_,
                    .id = execution.started_by(),
                    .text = dying,
                    .value = why});
}

void NodeStrand::close(const Error& why) {
  if (closed()) return;
  why_closed_ = why;
  on_progress_ = nullptr;
  entering_ = 0;  // Nobody starts any more, whether the value is left to the next or dropped.
  waits_.fail_all(why);
}

void NodeStrand::kill() {
  if (!closed())
    why_closed_ = Error{.kind = ErrorKind::node_stopped, .text = "killed", .worker = name_};
  killed_ = true;
  on_progress_ = nullptr;
  entering_ = 0;
  waits_.forget_all();
}

void NodeStrand::outlive_node() {
  close({.kind = ErrorKind::node_stopped, .text = "this worker has stopped", .worker = name_});
  executions_ = nullptr;
  trace_ = nullptr;
  exception_hook_ = nullptr;
}

void NodeStrand::mark(std::string_view name) const {
  if (trace_ == nullptr) return;
  trace_->on_event({.kind = EventKind::mark, .worker = self_, .text = name});
}

}  // namespace rehearsal
