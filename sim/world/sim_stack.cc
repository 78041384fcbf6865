#include "sim/world/sim_stack.h"

#include <exception>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/fibers/default_generator.h"
#include "sim/world/device_scope.h"
#include "sim/world/sim_runtime.h"

namespace rehearsal::sim {

using net_fake::DecisionKind;

WorkerId SimStack::worker(uint64_t) const { return runtime_.life().worker; }

net_fake::Chain SimStack::chain(uint64_t) const {
  return {net_fake::Chain::Kind::stack, runtime_.life().worker.value, number_};
}

void SimStack::begin(World& world, Execution& execution, Task body) {
  make(world, execution, std::move(body));
  world.queue.at(world.queue.now() + latency(world, /*starts=*/true), *this, ++serial_);
}

void SimStack::begin_at_once(World& world, Execution& execution, Task body) {
  make(world, execution, std::move(body));
  run();
  // Where the worker is dead its parks are answered at once.
  if (runtime_.killed_) unwind();
}

void SimStack::make(World& world, Execution& execution, Task body) {
  REHEARSAL_CHECK(phase_ == Phase::idle);
  Result<fibers::Stack> stack = world.stacks->take();
  REHEARSAL_CHECK(stack.ok(), stack.error().text);
  phase_ = Phase::starting;
  execution_ = &execution;
  parks_ = 0;
  passes_ = 0;
  if (runtime_.devices_ != nullptr) devices_ = {.machine = runtime_.devices_};
  fiber_.emplace(std::string(execution.label()), std::move(stack).value(), std::move(body));
  fiber_->set_on_terminate([this] { return may_be_left(); });
}

Duration SimStack::latency(World& world, bool starts) const {
  const net_fake::Delay& model = starts ? world.scheduling.start : world.scheduling.resume;
  if (model.is_constant()) return model.min();
  const net_fake::Key key{.kind = starts ? DecisionKind::start : DecisionKind::resume,
                          .subject = runtime_.life(),
                          .place = execution_->path(),
                          .occurrence = parks_};
  return model.sample(world.decisions->choose(key, net_fake::Delay::kDraws));
}

void SimStack::park(Waiter& waiter) {
  waiter.slot = this;
  ++parks_;
  passes_ = 0;
  phase_ = Phase::parked;
  parked_in_ = &waiter;
  fiber_->suspend();
  parked_in_ = nullptr;
  waiter.slot = nullptr;
}

void SimStack::pass(World& world) {
  if (++passes_ % kPassesInTurn != 0) return;
  phase_ = Phase::ready;
  world.queue.at(world.queue.now() + length_of_turn(turns()), *this, ++serial_);
  fiber_->suspend();
}

void SimStack::make_ready(World& world) {
  REHEARSAL_CHECK(phase_ == Phase::parked, execution_->label());
  phase_ = Phase::ready;
  world.queue.at(world.queue.now() + latency(world, /*starts=*/false), *this, ++serial_);
}

bool SimStack::unwind() {
  if (phase_ == Phase::starting) {
    ++serial_;
    fiber_->discard();
    fiber_.reset();
    phase_ = Phase::idle;
    runtime_.stack_ended(*this);
    return true;
  }
  while (phase_ != Phase::idle) {
    const Waiter* const in = parked_in_;
    if (in != nullptr && in->at_kill == AtKill::stays) return false;
    if (in != nullptr && in->at_kill == AtKill::lasts && !in->woken) return false;
    run();
  }
  return true;
}

void SimStack::leave() {
  ++serial_;  // It may have been about to go on.
  fiber_->abandon();
  ended();
}

// Code of a dead worker, or of a run that has failed, unwinds by an exception: a destructor on its
// way that calls somebody, which it does not live to see answered, lets another one out. A process
// that is killed runs no destructor.
bool SimStack::may_be_left() {
  return runtime_.killed_ || runtime_.stopped_ ||
         execution_->terminated_by(std::current_exception());
}

std::string_view SimStack::state() const {
  switch (phase_) {
    case Phase::idle:
      return "is idle";
    case Phase::starting:
      return "is about to start";
    case Phase::running:
      return "runs";
    case Phase::parked:
      return "waits";
    case Phase::ready:
      return "is about to go on";
  }
  return {};
}

void SimStack::run() {
  ++serial_;
  phase_ = Phase::running;
  if (runtime_.world_ != nullptr) ++runtime_.world_->turns;
  {
    const LifeSettings settings(runtime_.outer_settings(), runtime_.settings_);
    const fibers::ScopedExecution scope(execution_);
    const DeviceScope devices(runtime_.devices_ != nullptr ? &devices_ : nullptr);
    SimStack* const before = std::exchange(runtime_.current_, this);
    fiber_->resume();
    runtime_.current_ = before;
  }
  if (fiber_->left()) {
    fiber_->abandon();
    return ended();
  }
  if (!fiber_->done()) return;
  if (const std::exception_ptr thrown = fiber_->take_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const NodeKilled&) {  // The silent end of a killed execution.
    }
  }
  ended();
}

void SimStack::ended() {
  fiber_.reset();
  execution_ = nullptr;
  phase_ = Phase::idle;
  runtime_.stack_ended(*this);
}

}  // namespace rehearsal::sim
