#include "core/base/wait_table.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/monitor.h"

namespace rehearsal {

WaitId WaitTable::begin(Wait& wait) {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const uint32_t slot = free_.back();
  free_.pop_back();
  slots_[slot].wait = &wait;
  if (wait.code != nullptr) ++code_waits_;
  const WaitId id{slot, ++slots_[slot].generation};
  if (wait.execution != nullptr) {
    const bool keeps = wait.execution->monitors_kept > 0;
    trace_.on_event({.kind = EventKind::execution_parked,
                     .worker = self_,
                     .id = wait.execution->started_by(),
                     .number = wait.execution->monitors_kept,
                     .text = wait.execution->label(),
                     .value = keeps ? wait.execution->kept_for : std::string_view()});
    if (wait.execution->monitor) wait.execution->monitor->leave();
  }
  return id;
}

bool WaitTable::lasts(WaitId id) const {
  return id.slot < slots_.size() && slots_[id.slot].generation == id.generation &&
         slots_[id.slot].wait != nullptr;
}

Wait* WaitTable::release(WaitId id) {
  if (!lasts(id)) return nullptr;
  free_.push_back(id.slot);
  Wait* const wait = std::exchange(slots_[id.slot].wait, nullptr);
  if (wait->code != nullptr) --code_waits_;
  return wait;
}

void WaitTable::end(WaitId id) {
  if (!lasts(id)) return;
  Execution* execution = slots_[id.slot].wait->execution;
  if (execution == nullptr || !execution->monitor) {
    wake(*release(id));
    return;
  }
  // The wait lasts until its turn, so that fail_all can still end it.
  Monitor& monitor = *execution->monitor;
  monitor.enter([this, id, &monitor] {
    Wait* wait = release(id);
    if (wait == nullptr) return monitor.leave();
    wake(*wait);
  });
}

void WaitTable::wake(Wait& wait) {
  if (wait.execution != nullptr)
    trace_.on_event({.kind = EventKind::execution_resumed,
                     .worker = self_,
                     .id = wait.execution->started_by(),
                     .text = wait.execution->label()});
  // In this order: behind the second one its stack goes on, and both are gone.
  if (wait.code != nullptr) runtime_.wake(wait.code->waiter);
  runtime_.wake(wait.waiter);
}

void WaitTable::fail(WaitId id, const Error& error) {
  if (!lasts(id)) return;
  const CodeWait* const code = slots_[id.slot].wait->code;
  if (code != nullptr && !code->may_throw()) return;
  Wait& wait = *release(id);
  wait.failure = error;
  if (wait.execution != nullptr) wait.execution->monitor.reset();
  wake(wait);
}

void WaitTable::fail_all(const Error& error) {
  for (uint32_t slot = 0; slot < slots_.size(); ++slot)
    fail({slot, slots_[slot].generation}, error);
}

void WaitTable::give_up(const Execution& execution, const Error& error) {
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    const Wait* const wait = slots_[slot].wait;
    if (wait == nullptr || wait->execution != &execution || wait->shielded) continue;
    if (wait->code != nullptr)
      fail({slot, slots_[slot].generation}, error);
    else if (wait->given_up != nullptr)
      (*wait->given_up)(error);
  }
}

void WaitTable::forget_all() {
  for (uint32_t slot = 0; slot < slots_.size(); ++slot)
    if (release({slot, slots_[slot].generation}) != nullptr) continue;
}

uint64_t WaitTable::size() const { return slots_.size() - free_.size(); }

bool WaitTable::has_entered(const Monitor& monitor) const {
  return std::any_of(slots_.begin(), slots_.end(), [&monitor](const Slot& slot) {
    return slot.wait != nullptr && slot.wait->execution != nullptr &&
           slot.wait->execution->monitor.get() == &monitor;
  });
}

std::vector<WaitViews::Stack> WaitTable::views() const {
  std::vector<WaitViews::Stack> stacks;
  for (const Slot& slot : slots_)
    if (slot.wait != nullptr) stacks.push_back(view(*slot.wait));
  return stacks;
}

WaitViews::Stack WaitTable::view(const Wait& wait) const {
  WaitViews::Stack stack;
  stack.label = "a thread";
  if (const Execution* const execution = wait.execution) {
    stack.path = execution->path();
    stack.label = execution->label();
  }
  stack.what = wait.what;
  stack.id = wait.id;
  if (wait.code == nullptr) return stack;
  stack.what = wait.code->describe();
  stack.holder = wait.code->holder();
  stack.timed = wait.code->until.has_value();
  stack.waited = runtime_.now() - wait.since;
  return stack;
}

}  // namespace rehearsal
