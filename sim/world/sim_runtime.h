#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/ring.h"
#include "core/base/runtime.h"
#include "core/fibers/default_generator.h"
#include "core/fibers/inspection.h"
#include "core/fibers/stack_pool.h"
#include "net_fake/decisions.h"
#include "net_fake/delay.h"
#include "sim/device/selection.h"
#include "sim/world/event_queue.h"
#include "sim/world/life_timers.h"
#include "sim/world/local_clock.h"
#include "sim/world/torch_settings.h"

namespace rehearsal::sim {

class Findings;
class SimStack;

// How long ready work waits before it runs: what a busy machine's scheduler adds.
struct SchedulingModel {
  net_fake::Delay start;   // of an execution
  net_fake::Delay resume;  // of a woken one
  net_fake::Delay timer;   // beyond its instant
};

// The state that all lives of a simulated cluster share. Outlives them.
struct World {
  EventQueue queue;
  net_fake::Decisions* decisions = nullptr;
  fibers::StackPool* stacks = nullptr;
  SchedulingModel scheduling;
  std::vector<LocalClock> clocks;      // by worker; empty: every clock shows virtual time
  uint64_t turns = 0;                  // of the program's code, on whatever stack, so far
  OuterSettings settings;              // LibTorch's, while no code of the program runs
  const Findings* findings = nullptr;  // of the run; null: nobody judges it
  // Called between two events that a machine lets happen as one; null: nobody looks there.
  std::function<void()> between_events;
};

// The Runtime of one life of a simulated worker. The strand is free whenever no task of it is
// running, so `post` runs its task on the calling stack; executions are fibers that the event queue
// starts and resumes. Nothing here waits or knows a clock.
//
// May be used as long as anything holds it, also when the cluster has ended: tasks then run, timers
// and executions are dropped.
class SimRuntime final : public Runtime, public Executions {
 public:
  SimRuntime(World& world, net_fake::LifeId life);
  ~SimRuntime() override;

  // The simulated devices that its code has. Before anything runs; without, it has none.
  void set_devices(std::shared_ptr<device::Machine> devices) {
    devices_ = std::move(devices);
    off_stacks_.machine = devices_;
  }

  Instant now() const override;
  TimerId call_at(Instant when, Task task) override;
  void cancel(TimerId timer) override;
  void post(Task task) override;
  void execute(Execution& execution, StackPlacement placement, Task body) override;
  ParkOutcome park(Waiter& waiter) override;
  void wake(Waiter& waiter) override;
  bool wake_by_code(Waiter& waiter) override;

  Execution* running() const override;
  [[nodiscard]] uint64_t& next_node() const override { return fibers::next_node_of_running(); }
  bool may_park() const override;

  // The clock has jumped: timers are due when it shows their instant.
  void clock_jumped();

  // Called, once, off the strand, when the run has failed so that its code must not go on: by its
  // own next call.
  void set_on_stopped(std::function<void()> on_stopped) { on_stopped_ = std::move(on_stopped); }

  // Kills the life: timers and unstarted executions are dropped, and every parked stack unwinds
  // before this returns, in the order in which the stacks were made; one whose destructors wait for
  // another stack's code, after that. Off the strand.
  void kill();

  // No event will run anything of this life any more. REQUIRES: no stack is live.
  void detach();

  [[nodiscard]] bool killed() const { return killed_; }
  [[nodiscard]] uint64_t live_stacks() const { return live_stacks_; }
  // Stacks of the killed life that could not unwind, and are left as they are for ever: their
  // destructors wait for each other, or they stood in a wait that no exception can leave.
  [[nodiscard]] uint64_t stacks_left() const { return stacks_left_; }
  // For as long as they stay, which is for ever: they may use it.
  void keep_for_them(std::shared_ptr<void> value) { kept_ = std::move(value); }
  [[nodiscard]] uint64_t pending_timers() const { return timers_.size(); }
  [[nodiscard]] net_fake::LifeId life() const { return life_; }

  // Code that goes on without waiting for anything: for most turns, if there is more than one.
  struct Busy {
    std::string_view label;  // empty: there is none
    uint64_t turns = 0;
  };
  [[nodiscard]] Busy busy() const;

  // The labels of the executions that are parked or ready, one a line.
  [[nodiscard]] std::string describe_stacks() const;

  // For a debugger: its stacks; `worker` and what each waits for are for the caller to fill in. And
  // what runs beside them at this moment: "its strand runs", or an execution without a stack of
  // its own.
  struct StackPart {
    const Execution& execution;
    fibers::StackView view;
  };
  [[nodiscard]] std::vector<StackPart> stack_parts() const;
  [[nodiscard]] std::string running_part() const;

  // How often code on one stack may be told that its node was killed before the run is given up.
  static constexpr uint64_t kKilledAnswersMax = 1000;

 private:
  friend class SimStack;
  struct Body {
    Execution* execution = nullptr;
    Task task;
    bool has_stack = false;  // of its own, on which it may park
  };

  // The bodies that a turn has left go on in the next one, unless an entry to the strand comes
  // before.
  struct BodiesLeft final : net_fake::Occurrence {
    explicit BodiesLeft(SimRuntime& of) : runtime(of) {}
    WorkerId worker(uint64_t) const override { return runtime.life_.worker; }
    net_fake::Chain chain(uint64_t) const override {
      return {net_fake::Chain::Kind::rest, runtime.life_.worker.value, runtime.life_.life};
    }
    bool due(uint64_t ticket) const override {
      return ticket == serial && !runtime.inline_bodies_.empty();
    }
    void happen(uint64_t) override { runtime.run_inline_bodies(); }

    SimRuntime& runtime;
    uint64_t serial = 0;  // of the event that is scheduled
  };

  // For code that runs on no stack of its own; null: it has what it needs.
  [[nodiscard]] device::Selection* devices_off_stacks();
  void enter(Task& task);
  void run_inline_bodies();
  void run_inline(Body body);
  void run_at_once(Body body);
  [[nodiscard]] SimStack& idle_stack();
  void put_off_bodies();
  void stop_if_failed() const;
  void stack_ended(SimStack& stack);
  [[nodiscard]] bool unwind_stacks();
  void leave_stacks();
  [[nodiscard]] OuterSettings* outer_settings() {
    return world_ == nullptr ? nullptr : &world_->settings;
  }
  void count_killed_answer() const;

  World* world_;  // null once detached
  const net_fake::LifeId life_;
  const LocalClock* const clock_;  // null: it shows virtual time
  LifeTimers timers_;
  std::unique_ptr<TorchSettings> settings_;   // LibTorch's, of this life; null: as outside
  std::shared_ptr<device::Machine> devices_;  // null: it has none
  device::Selection off_stacks_;              // what is current of them where no stack runs

  bool on_strand_ = false;
  bool runs_bodies_ = false;     // inline ones, and those that run at once
  bool inline_running_ = false;  // an inline one runs
  bool killed_ = false;
  Ring<Task> tasks_;
  Ring<Body> inline_bodies_;
  BodiesLeft bodies_left_{*this};
  uint64_t inline_turns_ = 0;  // in a row, each of which left some
  Ring<Task> dropped_;         // to be destroyed off the strand

  SimStack* current_ = nullptr;  // whose code is running; null on the event loop's stack
  std::vector<std::unique_ptr<SimStack>> stacks_;  // in the order in which they were made
  std::vector<SimStack*> idle_stacks_;
  uint64_t live_stacks_ = 0;
  uint64_t stacks_left_ = 0;
  std::shared_ptr<void> kept_;
  std::function<void()> on_stopped_;
  mutable bool stopped_ = false;
  mutable uint64_t killed_answers_ = 0;
};

}  // namespace rehearsal::sim
