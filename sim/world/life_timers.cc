#include "sim/world/life_timers.h"

#include <utility>

#include "sim/world/sim_runtime.h"

namespace rehearsal::sim {

TimerId LifeTimers::add(World& world, Instant when, Task task) {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = slots_[index];
  slot.task = std::move(task);
  slot.world = &world;
  slot.number = ++made_;
  slot.late = world.scheduling.timer.is_constant();
  ++slot.generation;
  slot.when = when;
  schedule(world, index);
  return id_of(index, slot.generation);
}

void LifeTimers::schedule(World& world, size_t slot) {
  const Instant when = slots_[slot].when;
  const TimerId id = id_of(slot, slots_[slot].generation);
  world.queue.at(clock_ == nullptr ? when : clock_->virtual_time(when), *this, id.value);
}

// A timer that was scheduled already is so twice: whichever comes first counts.
void LifeTimers::rearm(World& world) {
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].world != nullptr) schedule(world, i);
}

Task LifeTimers::remove(TimerId timer) {
  if (!due(timer.value)) return nullptr;
  return release(slot_of(timer.value));
}

std::vector<Task> LifeTimers::remove_all() {
  std::vector<Task> tasks;
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].world != nullptr) tasks.push_back(release(i));
  return tasks;
}

bool LifeTimers::due(uint64_t ticket) const {
  const size_t index = slot_of(ticket);
  return index < slots_.size() && slots_[index].world != nullptr &&
         slots_[index].generation == static_cast<uint32_t>(ticket >> 32);
}

void LifeTimers::happen(uint64_t ticket) {
  Slot& slot = slots_[slot_of(ticket)];
  World& world = *slot.world;
  if (!std::exchange(slot.late, true)) {
    const net_fake::Key key{
        .kind = net_fake::DecisionKind::timer, .subject = life_, .number = slot.number};
    const Duration late =
        world.scheduling.timer.sample(world.decisions->choose(key, net_fake::Delay::kDraws));
    if (late.count() > 0) return world.queue.at(world.queue.now() + late, *this, ticket);
  }
  runtime_.post(release(slot_of(ticket)));
}

Task LifeTimers::release(size_t slot) {
  slots_[slot].world = nullptr;
  free_.push_back(static_cast<uint32_t>(slot));
  return std::exchange(slots_[slot].task, nullptr);
}

}  // namespace rehearsal::sim
