#pragma once

#include <cstdint>
#include <vector>

#include "core/base/runtime.h"
#include "net_fake/decisions.h"
#include "net_fake/schedule.h"

namespace rehearsal::sim {

struct World;
class LocalClock;

// The timers of one life. A timer that comes due is posted to the life's strand, later by what the
// scheduling model draws.
class LifeTimers final : public net_fake::Occurrence {
 public:
  // Instants are what `clock` shows; null: virtual time.
  LifeTimers(Runtime& runtime, net_fake::LifeId life, const LocalClock* clock = nullptr)
      : runtime_(runtime), life_(life), clock_(clock) {}

  TimerId add(World& world, Instant when, Task task);
  // The clock has jumped.
  void rearm(World& world);
  // The closure, to be destroyed by the caller; empty if the timer is gone.
  [[nodiscard]] Task remove(TimerId timer);
  // All closures, to be destroyed by the caller.
  [[nodiscard]] std::vector<Task> remove_all();
  [[nodiscard]] uint64_t size() const { return slots_.size() - free_.size(); }

  WorkerId worker(uint64_t) const override { return life_.worker; }
  net_fake::Chain chain(uint64_t) const override {
    return {net_fake::Chain::Kind::timers, life_.worker.value, life_.life};
  }
  bool due(uint64_t ticket) const override;
  void happen(uint64_t ticket) override;

 private:
  struct Slot {
    Task task;
    Instant when{};           // on the clock
    World* world = nullptr;   // null: the slot is free
    uint32_t generation = 0;  // of its present timer
    uint64_t number = 0;      // of the timer in its life: names its lateness
    bool late = false;        // its lateness has been drawn
  };
  [[nodiscard]] static TimerId id_of(size_t slot, uint32_t generation) {
    return TimerId{uint64_t{generation} << 32 | slot};
  }
  [[nodiscard]] static size_t slot_of(uint64_t ticket) { return ticket & 0xffffffff; }
  Task release(size_t slot);
  void schedule(World& world, size_t slot);

  Runtime& runtime_;
  const net_fake::LifeId life_;
  const LocalClock* const clock_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  uint64_t made_ = 0;
};

}  // namespace rehearsal::sim
