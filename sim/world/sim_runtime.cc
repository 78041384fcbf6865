#include "sim/world/sim_runtime.h"

#include <torch/csrc/autograd/graph_task.h>

#include <optional>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/base/error.h"
#include "core/base/node_strand.h"
#include "core/fibers/default_generator.h"
#include "core/fibers/thread_state.h"
#include "sim/oracle.h"
#include "sim/world/device_scope.h"
#include "sim/world/sim_stack.h"
#include "sim/world/turns.h"

namespace rehearsal::sim {

SimRuntime::SimRuntime(World& world, net_fake::LifeId life)
    : world_(&world),
      life_(life),
      clock_(world.clocks.empty() ? nullptr : &world.clocks[life.worker.value]),
      timers_(*this, life, clock_) {}

SimRuntime::~SimRuntime() { REHEARSAL_CHECK(live_stacks_ == 0, live_stacks_); }

Instant SimRuntime::now() const {
  if (world_ == nullptr) return Instant{};
  const Instant now = world_->queue.now();
  return clock_ == nullptr ? now : clock_->local(now);
}

void SimRuntime::clock_jumped() {
  if (world_ != nullptr && !killed_) timers_.rearm(*world_);
}

TimerId SimRuntime::call_at(Instant when, Task task) {
  if (world_ == nullptr || killed_) return TimerId{};
  return timers_.add(*world_, when, std::move(task));
}

void SimRuntime::cancel(TimerId timer) {
  if (Task task = timers_.remove(timer)) dropped_.push(std::move(task));
}

// The strand.

void SimRuntime::post(Task task) {
  if (on_strand_) {
    tasks_.push(std::move(task));
  } else {
    enter(task);
  }
}

device::Selection* SimRuntime::devices_off_stacks() {
  return devices_ == nullptr || device::selection().machine == devices_ ? nullptr : &off_stacks_;
}

void SimRuntime::enter(Task& task) {
  const DeviceScope devices(devices_off_stacks());
  // Where the strand is entered from the event loop, LibTorch's state is the default already.
  std::optional<fibers::DefaultThreadState> protocol_state;
  if (current_ != nullptr || inline_running_) protocol_state.emplace();
  {
    const fibers::ScopedExecution nobody(nullptr);
    const AskingTeachesNothing asking(devices_ != nullptr);
    on_strand_ = true;
    task();
    while (!tasks_.empty()) {
      dropped_.push(std::move(task));
      tasks_.pop_to(task);
      task();
    }
    on_strand_ = false;
  }
  // Off the strand from here on: what dies or runs may enter it again.
  task = nullptr;
  while (!dropped_.empty()) dropped_.pop() = nullptr;
  if (!runs_bodies_ && !inline_bodies_.empty()) run_inline_bodies();
}

// One after the other: those that one of them adds run behind it, not on top of it.
void SimRuntime::run_inline_bodies() {
  const DeviceScope devices(devices_off_stacks());
  runs_bodies_ = true;
  const LifeSettings settings(outer_settings(), settings_);
  for (uint64_t ran = 0; !inline_bodies_.empty() && (ran < kPassesInTurn || world_ == nullptr);) {
    Body body = inline_bodies_.pop();
    if (killed_ && !body.has_stack) continue;
    ++ran;
    if (world_ != nullptr) ++world_->turns;
    if (body.has_stack)
      run_at_once(std::move(body));
    else
      run_inline(std::move(body));
  }
  runs_bodies_ = false;
  if (!inline_bodies_.empty()) return put_off_bodies();
  inline_turns_ = 0;
}

void SimRuntime::run_inline(Body body) {
  inline_running_ = true;
  const fibers::ScopedExecution scope(body.execution);
  try {
    body.task();
  } catch (const NodeKilled&) {  // The silent end of a killed execution.
  }
  body.task = nullptr;
  inline_running_ = false;
}

void SimRuntime::put_off_bodies() {
  const Duration length = length_of_turn(++inline_turns_);
  world_->queue.at(world_->queue.now() + length, bodies_left_, ++bodies_left_.serial);
}

// Executions.

void SimRuntime::execute(Execution& execution, StackPlacement placement, Task body) {
  REHEARSAL_CHECK(on_strand_, execution.label());
  const bool at_once = placement == StackPlacement::at_once;
  if (world_ == nullptr || (killed_ && !at_once)) return dropped_.push(std::move(body));
  if (placement != StackPlacement::pool)
    return inline_bodies_.push({&execution, std::move(body), at_once});
  idle_stack().begin(*world_, execution, std::move(body));
}

SimStack& SimRuntime::idle_stack() {
  if (idle_stacks_.empty()) {
    const auto number = static_cast<uint32_t>(stacks_.size());
    stacks_.push_back(std::make_unique<SimStack>(*this, number));
    idle_stacks_.push_back(stacks_.back().get());
  }
  SimStack& stack = *idle_stacks_.back();
  idle_stacks_.pop_back();
  ++live_stacks_;
  return stack;
}

void SimRuntime::run_at_once(Body body) {
  if (world_ == nullptr) return;
  idle_stack().begin_at_once(*world_, *body.execution, std::move(body.task));
}

void SimRuntime::stack_ended(SimStack& stack) {
  --live_stacks_;
  idle_stacks_.push_back(&stack);
}

Execution* SimRuntime::running() const {
  if (killed_ || stopped_) count_killed_answer();
  if (on_strand_) return nullptr;
  Execution* const execution = fibers::running_execution();
  if (execution != nullptr) stop_if_failed();
  return execution;
}

void SimRuntime::stop_if_failed() const {
  if (stopped_ || world_ == nullptr || world_->findings == nullptr || !world_->findings->stops())
    return;
  stopped_ = true;
  if (on_stopped_) on_stopped_();
}

bool SimRuntime::may_park() const {
  return current_ != nullptr && !on_strand_ && !inline_running_ &&
         torch::autograd::get_current_graph_task_id() == -1;
}

ParkOutcome SimRuntime::park(Waiter& waiter) {
  if (!may_park()) return ParkOutcome::would_park;
  const bool ends = waiter.at_kill == AtKill::ends;
  if (killed_ && (ends || waiter.woken)) {
    count_killed_answer();
    return ends ? ParkOutcome::killed : ParkOutcome::woken;
  }
  if (waiter.woken)
    current_->pass(*world_);
  else
    current_->park(waiter);
  if (killed_ && ends) return ParkOutcome::killed;
  REHEARSAL_CHECK(waiter.woken);
  return ParkOutcome::woken;
}

void SimRuntime::wake(Waiter& waiter) {
  REHEARSAL_CHECK(on_strand_);
  if (waiter.by_code) return;
  REHEARSAL_CHECK(!waiter.woken);
  waiter.woken = true;
  if (waiter.slot != nullptr && !killed_) static_cast<SimStack*>(waiter.slot)->make_ready(*world_);
}

bool SimRuntime::wake_by_code(Waiter& waiter) {
  if (waiter.woken) return false;
  waiter.woken = true;
  waiter.by_code = true;
  if (waiter.slot != nullptr && !killed_) static_cast<SimStack*>(waiter.slot)->make_ready(*world_);
  return true;
}

// User code that swallows NodeKilled cannot be stopped by it.
void SimRuntime::count_killed_answer() const {
  ++killed_answers_;
  REHEARSAL_CHECK(killed_answers_ < kKilledAnswersMax,
                  current_ != nullptr ? current_->execution().label() : "code",
                  "goes on although its node was killed: NodeKilled must not be swallowed");
}

// The end.

void SimRuntime::kill() {
  REHEARSAL_CHECK(!on_strand_);
  REHEARSAL_CHECK(current_ == nullptr);
  killed_ = true;
  for (Task& task : timers_.remove_all()) task = nullptr;
  runs_bodies_ = true;
  while (!inline_bodies_.empty())
    if (Body body = inline_bodies_.pop(); body.has_stack) run_at_once(std::move(body));
  runs_bodies_ = false;
  while (unwind_stacks()) {
  }
  leave_stacks();
}

// Whether any has ended, so that another one may, too.
bool SimRuntime::unwind_stacks() {
  bool ended = false;
  for (size_t i = 0; i < stacks_.size(); ++i) {
    if (stacks_[i]->idle()) continue;
    killed_answers_ = 0;
    ended = stacks_[i]->unwind() || ended;
  }
  return ended;
}

void SimRuntime::leave_stacks() {
  for (const auto& stack : stacks_) {
    if (stack->idle()) continue;
    ++stacks_left_;
    stack->leave();
  }
}

void SimRuntime::detach() {
  if (killed_) leave_stacks();
  REHEARSAL_CHECK(live_stacks_ == 0, live_stacks_, describe_stacks());
  for (Task& task : timers_.remove_all()) task = nullptr;
  world_ = nullptr;
}

std::vector<SimRuntime::StackPart> SimRuntime::stack_parts() const {
  std::vector<StackPart> parts;
  for (const auto& stack : stacks_) {
    if (stack->idle()) continue;
    const Execution& execution = stack->execution();
    parts.push_back({execution,
                     {.worker = {},
                      .label = std::string(execution.label()),
                      .state = std::string(stack->state()),
                      .suspended_at = stack->suspended_at()}});
  }
  return parts;
}

std::string SimRuntime::running_part() const {
  if (on_strand_) return "its strand runs";
  const Execution* const running = fibers::running_execution();
  if (!inline_running_ || running == nullptr) return {};
  return std::string(running->label()) + " runs";
}

SimRuntime::Busy SimRuntime::busy() const {
  Busy most{.label = inline_turns_ > 0 ? kContinuation : "", .turns = inline_turns_};
  for (const auto& stack : stacks_)
    if (!stack->idle() && stack->turns() > most.turns)
      most = {stack->execution().label(), stack->turns()};
  return most;
}

std::string SimRuntime::describe_stacks() const {
  std::string lines;
  for (const auto& stack : stacks_)
    if (!stack->idle()) lines += std::string(stack->execution().label()) + "\n";
  return lines;
}

}  // namespace rehearsal::sim
