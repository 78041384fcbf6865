#include "sim/replay/replay_runtime.h"

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/error.h"
#include "core/fibers/default_generator.h"
#include "sim/world/stack_words.h"

namespace rehearsal::sim {

using record::Reading;

struct ReplayRuntime::Stack {
  enum class Phase : uint8_t { fresh, running, offering, parked, ready };
  Source source;
  Giver& giver;
  Execution& execution;
  Phase phase = Phase::fresh;
  uint64_t next_node = 0;  // LibTorch's numbering of autograd nodes, when it last ran or posted
  fibers::Fiber fiber;
  bool stays = false;  // nothing can end it
};

ReplayRuntime::ReplayRuntime(StrandClock strand_clock) : strand_clock_(std::move(strand_clock)) {}

ReplayRuntime::~ReplayRuntime() {
  for (const auto& [source, giver] : givers_)
    REHEARSAL_CHECK(giver.stack == nullptr, to_string(source));
}

// ---- what code is told ------------------------------------------------------

Instant ReplayRuntime::now() const {
  if (ending_) return last_now_;
  if (on_strand_) return last_now_ = strand_clock_();
  if (current_ == nullptr) return last_now_;
  std::deque<Reading>& readings = current_->giver.readings;
  // The readings of a stack behind its last recorded task are not known.
  if (readings.empty() || readings.front().kind != Reading::Kind::now) return last_now_;
  last_now_ = Instant(Duration(readings.front().nanoseconds));
  readings.pop_front();
  return last_now_;
}

bool ReplayRuntime::may_park() const {
  if (current_ == nullptr || on_strand_) return false;
  if (ending_) return true;
  std::deque<Reading>& readings = current_->giver.readings;
  if (readings.empty() || readings.front().kind != Reading::Kind::may_not_park) return true;
  readings.pop_front();
  return false;
}

// Nothing where the record does not say: behind its stack's last recorded task.
std::optional<Reading> ReplayRuntime::next_of_disk() {
  if (current_ == nullptr || on_strand_ || ending_) return std::nullopt;
  std::deque<Reading>& readings = current_->giver.readings;
  if (readings.empty() || readings.front().kind < Reading::Kind::saved) return std::nullopt;
  Reading next = std::move(readings.front());
  readings.pop_front();
  return next;
}

Status ReplayRuntime::save(const std::string&, const std::string&) {
  const std::optional<Reading> told = next_of_disk();
  if (told && told->kind == Reading::Kind::disk_fails)
    return Error{.kind = ErrorKind::storage, .text = told->bytes};
  return Unit{};
}

Result<std::optional<std::string>> ReplayRuntime::load(const std::string&) {
  std::optional<Reading> told = next_of_disk();
  if (told && told->kind == Reading::Kind::disk_fails)
    return Error{.kind = ErrorKind::storage, .text = told->bytes};
  if (!told || told->kind != Reading::Kind::loaded) return std::optional<std::string>{};
  return std::optional<std::string>(std::move(told->bytes));
}

Execution* ReplayRuntime::running() const {
  return on_strand_ ? nullptr : fibers::running_execution();
}

// ---- timers -----------------------------------------------------------------

TimerId ReplayRuntime::call_at(Instant, Task task) {
  timers_.emplace(++timers_set_, std::move(task));
  return TimerId{timers_set_};
}

void ReplayRuntime::cancel(TimerId timer) {
  auto node = timers_.extract(timer.value);
  if (!node.empty())
    dropped_.emplace_back(Source{Source::Kind::timer_closure, timer.value},
                          std::move(node.mapped()));
}

std::optional<Task> ReplayRuntime::take_timer(uint64_t timer) {
  auto node = timers_.extract(timer);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

// ---- the strand -------------------------------------------------------------

void ReplayRuntime::post(Task task) {
  if (ending_) {
    if (on_strand_) return late_tasks_.push_back(std::move(task));
    return on_strand(task);
  }
  // A thread of the program's own: see `refusal`.
  if (current_ != nullptr && !on_strand_ && fibers::running_execution() != &current_->execution)
    return;
  const uint64_t code = codes_.word_of(task);
  Source source{Source::Kind::strand, 0};
  if (!on_strand_) source = current_ != nullptr ? current_->source : dying_.value_or(Source{});
  const bool tells = !on_strand_ && current_ != nullptr && tells_of_nodes();
  if (tells) {
    on_strand_ = true;
    task();
    on_strand_ = false;
    task = [] {};
  }
  givers_[source].offers.push_back({code, std::move(task)});
  if (!on_strand_ && current_ != nullptr && !tells) stop_here();
}

// A stack that has made autograd nodes first posts which ones: all stacks share this thread's
// numbering, and a node wants to hear of its numbers in their order. Nothing else follows from such
// a task, so it runs at once, and an empty one takes its place. The stack goes on to the task that
// made it tell, with no code of the program's between them: that may be the release of a thing that
// it drops last here, and did not in the record.
bool ReplayRuntime::tells_of_nodes() const {
  const uint64_t next = at::sequence_number::peek();
  return std::exchange(current_->next_node, next) != next;
}

// Inside LibTorch's engine the thread is the engine's: its stack runs on, and its tasks wait.
void ReplayRuntime::stop_here() {
  if (torch::autograd::get_current_graph_task_id() != -1) return;
  current_->phase = Stack::Phase::offering;
  current_->fiber.suspend();
}

void ReplayRuntime::begin_strand() {
  REHEARSAL_CHECK(!on_strand_);
  on_strand_ = true;
}

void ReplayRuntime::end_strand() {
  on_strand_ = false;
  for (auto& [source, task] : std::exchange(dropped_, {})) drop_task(source, std::move(task));
  for (Task& task : std::exchange(late_tasks_, {})) post(std::move(task));
  if (ending_) return;
  for (const Source source : std::exchange(touched_, {})) run_tail(source, givers_[source]);
}

void ReplayRuntime::drop_task(Source source, Task task) {
  Giver& giver = givers_[source];
  if (ending_) return destroy_on_stack(source, std::move(task));
  if (giver.expected.empty()) return destroy(source, std::move(task));
  giver.closure = std::move(task);
}

void ReplayRuntime::destroy(Source source, Task task) {
  const std::optional<Source> before = std::exchange(dying_, source);
  task = nullptr;
  dying_ = before;
}

// At the end nothing answers the calls of a destructor; one that lets out what they throw leaves
// its stack as it is.
void ReplayRuntime::destroy_on_stack(Source source, Task task) {
  Result<fibers::Stack> stack = stacks_.take();
  if (!stack.ok()) throw RpcError(stack.error());
  const std::optional<Source> before = dying_;
  fibers::Fiber fiber("the end of values", std::move(stack).value(),
                      [&] { destroy(source, std::move(task)); });
  fiber.set_on_terminate([] { return true; });
  fiber.resume();
  dying_ = before;
  if (fiber.left()) fiber.abandon();
}

// ---- stacks -----------------------------------------------------------------

void ReplayRuntime::start_main(Execution& execution, Task body) {
  add_stack({Source::Kind::main, 0}, execution, std::move(body));
}

void ReplayRuntime::execute(Execution& execution, StackPlacement, Task body) {
  const Source source{Source::Kind::execution, ++executions_begun_};
  if (ending_) {
    dropped_.emplace_back(source, std::move(body));
    return;
  }
  add_stack(source, execution, std::move(body));
  touched_.push_back(source);
}

void ReplayRuntime::add_stack(Source source, Execution& execution, Task body) {
  Giver& giver = givers_[source];
  Result<fibers::Stack> stack = stacks_.take();
  if (!stack.ok()) throw RpcError(stack.error());
  giver.stack.reset(new Stack{
      source, giver, execution, Stack::Phase::fresh, 0,
      fibers::Fiber(std::string(execution.label()), std::move(stack).value(), std::move(body))});
  // When the replay ends its stacks unwind by an exception, and meet destructors that let another
  // one out.
  giver.stack->fiber.set_on_terminate(
      [this, &execution] { return ending_ || execution.terminated_by(std::current_exception()); });
}

ParkOutcome ReplayRuntime::park(Waiter& waiter) {
  if (!may_park()) return ParkOutcome::would_park;
  if (ending_ && waiter.at_kill == AtKill::stays) {
    current_->stays = true;
    current_->fiber.suspend();
  }
  if (ending_) return ParkOutcome::killed;
  if (!waiter.woken) {
    waiter.slot = current_;
    current_->phase = Stack::Phase::parked;
    current_->fiber.suspend();
  }
  return waiter.woken ? ParkOutcome::woken : ParkOutcome::killed;
}

void ReplayRuntime::wake(Waiter& waiter) {
  if (waiter.by_code) return;
  waiter.woken = true;
  auto* stack = static_cast<Stack*>(waiter.slot);
  if (stack == nullptr) return;
  stack->phase = Stack::Phase::ready;
  touched_.push_back(stack->source);
}

// The record asks for what its stack does next when that has happened.
bool ReplayRuntime::wake_by_code(Waiter& waiter) {
  if (waiter.woken) return false;
  waiter.woken = true;
  waiter.by_code = true;
  if (auto* stack = static_cast<Stack*>(waiter.slot)) stack->phase = Stack::Phase::ready;
  return true;
}

bool ReplayRuntime::can_run(const Giver& giver) {
  return giver.stack != nullptr && giver.stack->phase != Stack::Phase::parked &&
         giver.stack->phase != Stack::Phase::running;
}

// To its next post or park, or to its end.
void ReplayRuntime::run(Source source, Giver& giver) {
  Stack& stack = *giver.stack;
  REHEARSAL_CHECK(current_ == nullptr && !on_strand_, to_string(source));
  stack.phase = Stack::Phase::running;
  {
    const fibers::ScopedExecution scope(&stack.execution);
    stack.next_node = at::sequence_number::peek();
    current_ = &stack;
    stack.fiber.resume();
    current_ = nullptr;
  }
  if (stack.fiber.left()) stack.fiber.abandon();
  if (!stack.fiber.done()) return;
  const std::exception_ptr thrown = stack.fiber.take_exception();
  giver.stack.reset();
  if (thrown == nullptr) return;
  try {
    std::rethrow_exception(thrown);
  } catch (const NodeKilled&) {  // The silent end of a killed execution.
  }
}

// A stack of which the record has no more tasks runs on at once: what it lets go of may be
// somebody else's to destroy.
void ReplayRuntime::run_tail(Source source, Giver& giver) {
  while (giver.expected.empty() && can_run(giver)) run(source, giver);
}

std::vector<fibers::StackView> ReplayRuntime::stacks(const std::string& worker,
                                                     const WaitViews& waits,
                                                     const std::vector<std::string>& names) const {
  using Phase = Stack::Phase;
  std::vector<fibers::StackView> views;
  for (const auto& [source, giver] : givers_) {
    if (giver.stack == nullptr) continue;
    const Stack& stack = *giver.stack;
    const std::string state = stack.phase == Phase::fresh     ? "is about to start"
                              : stack.phase == Phase::running ? "runs"
                              : stack.phase == Phase::parked  ? "waits"
                                                              : "is about to go on";
    const bool is_main = source.kind == Source::Kind::main;
    views.push_back({.worker = worker,
                     .label = is_main ? "main" : std::string(stack.execution.label()),
                     .state = state_of(stack.execution, state, waits, names),
                     .suspended_at = stack.fiber.suspended_at()});
  }
  return views;
}

// ---- the record -------------------------------------------------------------

void ReplayRuntime::expect(const record::Posted& posted) {
  Giver& giver = givers_[posted.from];
  giver.expected.push_back(posted.code);
  for (const Reading& reading : posted.readings) {
    const bool tells = reading.kind == Reading::Kind::woke_beside_threads;
    woke_beside_threads_ |= tells;
    if (!tells) giver.readings.push_back(reading);
  }
}

std::optional<Task> ReplayRuntime::take(const record::Posted& posted) {
  Giver& giver = givers_[posted.from];
  REHEARSAL_CHECK(!giver.expected.empty(), to_string(posted.from));
  std::optional<Task> task = take_from(giver, posted.code);
  while (!task && can_run(giver)) {
    run(posted.from, giver);
    task = take_from(giver, posted.code);
  }
  if (!task && giver.closure) {
    destroy(posted.from, std::exchange(giver.closure, nullptr));
    task = take_from(giver, posted.code);
  }
  if (!task) task = take_elsewhere(posted.from, posted.code);
  giver.expected.pop_front();
  if (task && giver.stack != nullptr) touched_.push_back(posted.from);
  return task;
}

// The strand's own tasks run in the order of their posts. Some stay behind: a thing that the strand
// lets go of last here may have been a stack's to let go of in the record.
std::optional<Task> ReplayRuntime::take_from(Giver& giver, uint64_t code) {
  const auto strand = givers_.find({Source::Kind::strand, 0});
  const bool in_order = strand != givers_.end() && &strand->second == &giver;
  const auto found =
      std::find_if(giver.offers.begin(), giver.offers.end(), [&](const Offer& offer) {
        return offer.code == code || (in_order && is_expected(giver, offer.code));
      });
  if (found == giver.offers.end() || found->code != code) return std::nullopt;
  Task task = std::move(found->task);
  giver.offers.erase(found);
  return task;
}

bool ReplayRuntime::is_expected(const Giver& giver, uint64_t code) {
  return std::find(giver.expected.begin(), giver.expected.end(), code) != giver.expected.end();
}

// Of a giver that is not meant: a task that the record does not have there, which is to say that
// it is not the one that the record has next of it, or behind those that it gives already.
std::optional<Task> ReplayRuntime::take_stray(Giver& giver, uint64_t code) {
  auto expected = giver.expected.begin();
  for (auto offer = giver.offers.begin(); offer != giver.offers.end(); ++offer) {
    if (expected != giver.expected.end() && *expected == offer->code) {
      ++expected;
    } else if (offer->code == code) {
      Task task = std::move(offer->task);
      giver.offers.erase(offer);
      return task;
    }
  }
  return std::nullopt;
}

std::optional<Task> ReplayRuntime::take_elsewhere(Source source, uint64_t code) {
  for (auto& [other, giver] : givers_) {
    if (other == source) continue;
    if (std::optional<Task> task = take_stray(giver, code)) return task;
  }
  for (auto& [other, giver] : givers_) {
    if (other == source || !can_run(giver)) continue;
    run(other, giver);
    if (std::optional<Task> task = take_stray(giver, code)) return task;
  }
  for (auto& [other, giver] : givers_) {
    if (other == source) continue;
    if (std::optional<Task> task = take_alike(giver, code)) return task;
  }
  return std::nullopt;
}

// Tasks of one tag do the same: two handles of one value, say. The one that the record has of this
// giver may come of somebody else.
std::optional<Task> ReplayRuntime::take_alike(Giver& giver, uint64_t code) {
  const auto found = std::find_if(
      giver.offers.begin(), giver.offers.end(),
      [code](const Offer& offer) { return offer.code == code && offer.task.tag() != 0; });
  if (found == giver.offers.end()) return std::nullopt;
  Task task = std::move(found->task);
  giver.offers.erase(found);
  return task;
}

// ---- the end ----------------------------------------------------------------

void ReplayRuntime::run_out() {
  for (auto& [source, giver] : givers_)
    if (can_run(giver)) run(source, giver);
}

void ReplayRuntime::finish(Task kill_node, Task let_go) {
  ending_ = true;
  for (auto& [source, giver] : givers_) giver.offers.clear();
  post(std::move(kill_node));
  for (auto& [source, giver] : givers_) unwind(source, giver);
  for (auto& [number, task] : std::exchange(timers_, {})) task = nullptr;
  for (auto& [source, giver] : givers_)
    if (giver.closure) destroy_on_stack(source, std::exchange(giver.closure, nullptr));
  post(std::move(let_go));
}

void ReplayRuntime::unwind(Source source, Giver& giver) {
  if (giver.stack == nullptr) return;
  if (giver.stack->phase == Stack::Phase::fresh) {
    giver.stack->fiber.discard();
    giver.stack.reset();
    return;
  }
  while (giver.stack != nullptr) {
    run(source, giver);
    if (giver.stack == nullptr || !giver.stack->stays) continue;
    giver.stack->fiber.abandon();
    giver.stack.reset();
  }
}

}  // namespace rehearsal::sim
