#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "net_fake/decisions.h"
#include "sim/world/event_queue.h"
#include "sim/world/machine_faults.h"

namespace rehearsal::sim {

struct World;

// The machines that the workers run on: one may pause, be slow, or have its clock jump. An event of
// a worker whose machine is busy waits, and happens in the same order when the machine goes on;
// frames that it has sent arrive, and frames sent to it stay in the network, whose queue grows. Its
// connections last: a machine that stands still for a time has not gone.
class Machines {
 public:
  // `jumped` is told of the worker whose clock has jumped: its timers are due earlier.
  Machines(World& world, MachineFaults faults, uint32_t workers,
           std::function<void(WorkerId)> jumped);

  // `next` is about to be taken, as event `number` of `worker`. True if its machine keeps it for
  // later: then it has been taken.
  [[nodiscard]] bool keeps(const EventQueue::Event& next, WorkerId worker, uint64_t number);

  // `next`, which was not kept, is about to happen.
  void spend_time(WorkerId worker);

  // Nothing happens at this worker for so long, from now on.
  void pause(WorkerId worker, Duration time);

  // All go on, and nothing goes wrong any more. Clocks that are wrong stay wrong.
  void heal();

  // For how long the machine has been busy so far: by so much its worker may be late.
  [[nodiscard]] Duration busy_time(WorkerId worker) const { return machine(worker).busy_time; }
  [[nodiscard]] uint64_t pauses() const { return pauses_; }
  [[nodiscard]] uint64_t jumps() const { return jumps_; }

 private:
  // Its events let what was kept happen, one by one.
  struct Machine final : net_fake::Occurrence {
    Machines* machines = nullptr;
    WorkerId id;
    std::deque<EventQueue::Event> kept;
    Instant busy_until{};
    Duration busy_time{};
    Instant next_jump{};
    uint64_t serial = 0;  // of the event that is scheduled

    WorkerId worker(uint64_t) const override { return id; }
    net_fake::Chain chain(uint64_t) const override {
      return {net_fake::Chain::Kind::rest, id.value, UINT32_MAX};
    }
    bool due(uint64_t ticket) const override { return ticket == serial; }
    void happen(uint64_t) override { machines->go_on(*this); }
  };
  [[nodiscard]] const Machine& machine(WorkerId worker) const { return *machines_[worker.value]; }
  [[nodiscard]] Machine& machine(WorkerId worker) { return *machines_[worker.value]; }

  [[nodiscard]] Duration step_of(WorkerId worker) const;
  void consider_pause(Machine& machine, uint64_t number);
  void consider_jump(Machine& machine, uint64_t number);
  void make_busy(Machine& machine, Duration time);
  void go_on(Machine& machine);
  void schedule(Machine& machine);
  [[nodiscard]] Duration length(const net_fake::Key& key, Duration shortest, Duration longest);

  World& world_;
  MachineFaults faults_;
  const std::function<void(WorkerId)> jumped_;
  std::vector<std::unique_ptr<Machine>> machines_;
  Instant next_pause_{};
  uint64_t pauses_ = 0;
  uint64_t jumps_ = 0;
};

}  // namespace rehearsal::sim
