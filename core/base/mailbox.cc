#include "core/base/mailbox.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>

#include <stdexcept>

#include "core/base/check.h"

namespace rehearsal {
namespace {

// Distinguishes the paths of releases from all others.
constexpr uint64_t kReleases = 0x72656c6561736573;

}  // namespace

bool WaitHandle::lasts() const { return mailbox_->waits().lasts(id_); }
void WaitHandle::end() const { mailbox_->waits().end(id_); }

Mailbox::Mailbox(std::shared_ptr<Runtime> runtime, const Executions* executions, Trace* trace,
                 WorkerId self, std::string name, Seed seed)
    : runtime_(std::move(runtime)),
      executions_(executions),
      trace_(trace),
      self_(self),
      name_(std::move(name)),
      seed_(seed),
      waits_(*runtime_, *trace_, self_) {}

void Mailbox::note_nodes() {
  if (killed_) return;
  Execution* const running = running_or_null();
  if (running == nullptr) return;
  const uint64_t next = at::sequence_number::peek();
  const uint64_t from = std::exchange(executions_->next_node(), next);
  if (from == next) return;
  runtime_->post([mailbox = shared_from_this(), maker = running->started_by(),
                  thread = at::RecordFunction::currentThreadId(), from, next] {
    if (mailbox->closed() || !mailbox->on_nodes_made_) return;
    mailbox->on_nodes_made_(maker, thread, from, next);
  });
}

void Mailbox::post_always(Task task) {
  note_nodes();
  runtime_->post(std::move(task));
}

void Mailbox::note_dropped() const {
  if (!killed_) mark("posted to a closed mailbox");
}

Status Mailbox::wait(std::string_view what, const CausalId& id,
                     UniqueFunction<void(WaitHandle)> arrange) {
  if (executions_ == nullptr) return *why_closed_;
  if (!executions_->may_park())
    return Error{.kind = ErrorKind::would_park,
                 .text = "waiting for " + std::string(what) +
                         " here would stop what it waits for: use the asynchronous form and `then`",
                 .worker = name_};
  Wait wait;
  wait.execution = executions_->running();
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

Execution& Mailbox::running() const {
  if (executions_ == nullptr) throw RpcError(*why_closed_);
  if (killed_) throw NodeKilled{};
  Execution* execution = executions_->running();
  if (execution == nullptr)
    throw std::logic_error("this thread is not known to worker '" + name_ +
                           "': register it before it calls");
  return *execution;
}

std::shared_ptr<Execution> Mailbox::make_execution(const CausalId& id,
                                                   std::string_view label) const {
  auto execution = std::make_shared<Execution>(id, label, seed_);
  if (incarnation_) execution->set_incarnation(*incarnation_);
  return execution;
}

void Mailbox::make_execution(std::optional<Execution>& place, const CausalId& id,
                             std::string_view label) const {
  place.emplace(id, label, seed_);
  if (incarnation_) place->set_incarnation(*incarnation_);
}

void Mailbox::run_continuation(const CausalId& id, Task body) {
  if (killed_) return;
  start(make_execution(id, "continuation"), Where::inline_, std::move(body));
}

void Mailbox::run_on_stack(const StackRun& run, Task body) {
  auto execution = make_execution(run.id, run.label);
  execution->depth = run.depth;
  if (run.monitor == nullptr) return start(std::move(execution), Where::pool, std::move(body));
  ++entering_;
  run.monitor->enter([mailbox = shared_from_this(), execution = std::move(execution),
                      monitor = run.monitor, body = std::move(body)]() mutable {
    // The node ended while it waited for its turn.
    if (mailbox->closed()) {
      monitor->leave();
      return mailbox->release_later(std::make_shared<Task>(std::move(body)));
    }
    --mailbox->entering_;
    execution->monitor = std::move(monitor);
    mailbox->start(std::move(execution), Where::pool, std::move(body));
  });
}

void Mailbox::start(std::shared_ptr<Execution> execution, Where where, Task body) {
  Execution& running = *execution;
  ++running_;
  trace_->on_event({.kind = EventKind::execution_started,
                    .worker = self_,
                    .id = running.started_by(),
                    .text = running.label()});
  runtime_->execute(running, where,
                    [mailbox = shared_from_this(), execution = std::move(execution),
                     body = std::move(body)]() mutable {
                      body();
                      mailbox->post_always([mailbox, execution] { mailbox->end(*execution); });
                    });
}

void Mailbox::end(Execution& execution) {
  --running_;
  if (execution.monitor && !killed_) std::exchange(execution.monitor, nullptr)->leave();
  if (trace_ == nullptr) return;
  trace_->on_event({.kind = EventKind::execution_ended,
                    .worker = self_,
                    .id = execution.started_by(),
                    .text = execution.label()});
  progressed();
}

void Mailbox::release_later(std::shared_ptr<void> value) {
  if (value == nullptr) return;
  // Destructors of users may call: no two releases, of whichever life, may give the same ids.
  const CausalId id{{}, {kReleases, incarnation_.value_or(Incarnation{}).value}, releases_++};
  auto execution = make_execution(id, "release");
  Execution& running = *execution;
  runtime_->execute(
      running, Where::inline_,
      [execution = std::move(execution), value = std::move(value)]() mutable { value.reset(); });
}

void Mailbox::close(const Error& why) {
  if (closed()) return;
  why_closed_ = why;
  on_progress_ = nullptr;
  entering_ = 0;  // Nobody starts any more, whether the value is left to the next or dropped.
  waits_.fail_all(why);
}

void Mailbox::kill() {
  if (!closed())
    why_closed_ = Error{.kind = ErrorKind::node_stopped, .text = "killed", .worker = name_};
  killed_ = true;
  on_progress_ = nullptr;
  entering_ = 0;
  waits_.forget_all();
}

void Mailbox::outlive_node() {
  close({.kind = ErrorKind::node_stopped, .text = "this worker has stopped", .worker = name_});
  executions_ = nullptr;
  trace_ = nullptr;
  exception_hook_ = nullptr;
}

void Mailbox::mark(std::string_view name) const {
  if (trace_ == nullptr) return;
  trace_->on_event({.kind = EventKind::mark, .worker = self_, .text = name});
}

}  // namespace rehearsal
