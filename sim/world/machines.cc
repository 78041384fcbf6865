#include "sim/world/machines.h"

#include <algorithm>
#include <utility>

#include "sim/world/sim_runtime.h"

namespace rehearsal::sim {

using net_fake::DecisionKind;
using net_fake::Key;

Machines::Machines(World& world, MachineFaults faults, uint32_t workers,
                   std::function<void(WorkerId)> jumped)
    : world_(world), faults_(std::move(faults)), jumped_(std::move(jumped)) {
  for (uint32_t i = 0; i < workers; ++i) {
    machines_.push_back(std::make_unique<Machine>());
    machines_.back()->machines = this;
    machines_.back()->id = WorkerId{i};
  }
}

bool Machines::keeps(const EventQueue::Event& next, WorkerId worker, uint64_t number) {
  Machine& machine = *machines_[worker.value];
  if (next.what == &machine) return false;
  const Instant now = std::max(next.when, world_.queue.now());
  if (machine.kept.empty() && machine.busy_until <= now) {
    world_.queue.move_to(now);
    consider_jump(machine, number);
    consider_pause(machine, number);
    if (machine.busy_until <= now) return false;
  }
  world_.queue.take(next);
  machine.kept.push_back(next);
  if (machine.kept.size() == 1) schedule(machine);
  return true;
}

Duration Machines::step_of(WorkerId worker) const {
  return faults_.steps.empty() ? Duration{} : faults_.steps[worker.value];
}

void Machines::spend_time(WorkerId worker) {
  Machine& busy = machine(worker);
  if (const Duration step = step_of(worker); step.count() > 0 && busy.kept.empty())
    make_busy(busy, step);
}

void Machines::make_busy(Machine& machine, Duration time) {
  machine.busy_until = world_.queue.now() + time;
  machine.busy_time += time;
}

void Machines::consider_pause(Machine& machine, uint64_t number) {
  if (faults_.pause_millionths == 0 || world_.queue.now() < next_pause_) return;
  const Key key{.kind = DecisionKind::pause, .subject = {machine.id, 0}, .number = number};
  if (!happens(*world_.decisions, key, faults_.pause_millionths)) return;
  Key how_long = key;
  how_long.kind = DecisionKind::pause_length;
  const Duration time = length(how_long, faults_.pause_min, faults_.pause_max);
  pause(machine.id, time);
  next_pause_ = machine.busy_until + faults_.pause_gap;
}

void Machines::pause(WorkerId worker, Duration time) {
  ++pauses_;
  Machine& pausing = machine(worker);
  make_busy(pausing, time);
  if (!pausing.kept.empty()) schedule(pausing);
}

void Machines::consider_jump(Machine& machine, uint64_t number) {
  if (faults_.jump_millionths == 0 || world_.queue.now() < machine.next_jump) return;
  const Key key{.kind = DecisionKind::clock_jump, .subject = {machine.id, 0}, .number = number};
  if (!happens(*world_.decisions, key, faults_.jump_millionths)) return;
  Key how_far = key;
  how_far.kind = DecisionKind::clock_jump_length;
  ++jumps_;
  world_.clocks[machine.id.value].jump(length(how_far, {}, faults_.jump_max));
  machine.next_jump = world_.queue.now() + faults_.jump_gap;
  jumped_(machine.id);
}

// Short ones are as likely as long ones: each half of the longest down to the shortest.
Duration Machines::length(const Key& key, Duration shortest, Duration longest) {
  shortest = std::max(shortest, longest / 256);
  uint64_t lengths = 1;
  while (longest / (int64_t{1} << lengths) >= shortest && lengths < 9) ++lengths;
  // The least choice is the shortest one.
  const uint64_t halvings = lengths - 1 - world_.decisions->choose(key, lengths);
  return longest / (int64_t{1} << halvings);
}

void Machines::schedule(Machine& machine) {
  world_.queue.at(machine.busy_until, machine, ++machine.serial);
}

// A strategy may have held the machine's own event back: what should have happened meanwhile
// happens now, so that the delay does not add up.
void Machines::go_on(Machine& machine) {
  const Instant now = world_.queue.now();
  Instant at = machine.busy_until;
  do {
    const EventQueue::Event next = machine.kept.front();
    machine.kept.pop_front();
    if (!next.what->due(next.ticket)) continue;
    const Duration step = step_of(machine.id);
    machine.busy_time += step;
    at += step;
    machine.busy_until = at;
    next.what->happen(next.ticket);
    if (world_.between_events) world_.between_events();
  } while (!machine.kept.empty() && at < now);
  if (!machine.kept.empty()) schedule(machine);
}

void Machines::heal() {
  faults_ = {};
  for (const auto& machine : machines_) {
    machine->busy_until = std::min(machine->busy_until, world_.queue.now());
    if (!machine->kept.empty()) schedule(*machine);
  }
}

}  // namespace rehearsal::sim
