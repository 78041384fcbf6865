#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/runtime.h"
#include "core/fibers/fiber.h"
#include "net_fake/schedule.h"
#include "sim/device/selection.h"
#include "sim/world/turns.h"

namespace rehearsal::sim {

class SimRuntime;
struct World;

// A stack of a SimRuntime: runs one execution after another, each on a fiber of its own. Its events
// start the execution and resume it after a park.
class SimStack final : public net_fake::Occurrence {
 public:
  // `number` tells the stacks of a runtime apart.
  SimStack(SimRuntime& runtime, uint32_t number) : runtime_(runtime), number_(number) {}

  // Gives the stack an execution; it starts when its event comes.
  void begin(World& world, Execution& execution, Task body);
  // The same; it starts now. Returns when it parks or has ended.
  void begin_at_once(World& world, Execution& execution, Task body);

  // On the stack itself: suspends it until `make_ready`, or until it is killed.
  void park(Waiter& waiter);
  // On the stack itself, where `park` would have had nothing to wait for. After too many of these
  // in a row the stack gives way, as if it were woken at once, and time passes.
  void pass(World& world);
  // So many times it has given way since it waited last.
  [[nodiscard]] uint64_t turns() const { return passes_ / kPassesInTurn; }
  // Schedules the parked stack to go on.
  void make_ready(World& world);

  // Runs what the stack has to do until it ends; its parks answer `killed`. Whether it has ended:
  // it may stand in a wait that no kill ends.
  bool unwind();
  // Leaves what can neither go on nor unwind.
  void leave();

  [[nodiscard]] bool idle() const { return phase_ == Phase::idle; }
  [[nodiscard]] bool started() const { return phase_ > Phase::starting; }
  [[nodiscard]] Execution& execution() const { return *execution_; }

  // For a debugger.
  [[nodiscard]] std::string_view state() const;
  [[nodiscard]] const fibers::SavedRegisters* suspended_at() const {
    return fiber_ ? fiber_->suspended_at() : nullptr;
  }

  WorkerId worker(uint64_t) const override;
  net_fake::Chain chain(uint64_t ticket) const override;
  bool due(uint64_t ticket) const override { return ticket == serial_; }
  void happen(uint64_t) override { run(); }

 private:
  enum class Phase : uint8_t { idle, starting, running, parked, ready };
  void make(World& world, Execution& execution, Task body);
  // Of code that has called std::terminate: whether only its stack ends.
  [[nodiscard]] bool may_be_left();
  void run();
  void ended();
  [[nodiscard]] Duration latency(World& world, bool starts) const;

  SimRuntime& runtime_;
  const uint32_t number_;
  Phase phase_ = Phase::idle;
  uint64_t serial_ = 0;  // of the event that runs it next; any other event is called off
  Execution* execution_ = nullptr;
  std::optional<fibers::Fiber> fiber_;
  device::Selection devices_;          // what is current on it; see DeviceScope
  const Waiter* parked_in_ = nullptr;  // until it goes on
  uint64_t parks_ = 0;                 // of this execution
  uint64_t passes_ = 0;                // since its last park
};

}  // namespace rehearsal::sim
