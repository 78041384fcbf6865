#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/fibers/inspection.h"
#include "core/fibers/stack_pool.h"
#include "sim/cluster.h"
#include "sim/device/pinned_memory.h"
#include "sim/explain/history_recorder.h"
#include "sim/hunt/noted_throws.h"
#include "sim/oracles/wait_graph.h"
#include "sim/strategies/strategy.h"
#include "sim/world/device_lending.h"
#include "sim/world/disk.h"
#include "sim/world/event_collector.h"
#include "sim/world/event_lines.h"
#include "sim/world/fault_plan.h"
#include "sim/world/heap_pool.h"
#include "sim/world/life.h"
#include "sim/world/machines.h"
#include "sim/world/run_pulse.h"

namespace rehearsal::sim {

// The parts of a Cluster, and its loop: take the next event, let the plan's faults happen before
// it, run it, and look at the oracles.
class ClusterParts final : private net_fake::Occurrence, private fibers::Inspected {
 public:
  ClusterParts(Seed seed, const Program& program, ClusterOptions options);
  ~ClusterParts() override;

  void begin();
  // Runs one event; false if none is due up to `limit`, or the run has failed.
  bool step(Instant limit = Instant::max());
  void run_to_end();
  // Runs this event of the queue, out of turn.
  void run_event(const EventQueue::Event& next);

  void at(Instant when, std::function<void()> action);
  // Now; the rest as planned.
  void crash(const PlannedCrash& crash);
  void restart(WorkerId worker);
  void restart_after(WorkerId worker, Duration time);
  void lose_disk(WorkerId worker) { disks_[worker.value].lose(); }
  // `worker` takes `peer` for dead, whether it is or not.
  void give_up(WorkerId worker, WorkerId peer);
  void pause(WorkerId worker, Duration time);
  // Code outside of all lives has run, and may have changed LibTorch's settings.
  void look_outside() { world_.settings.look(); }
  void add_oracle(std::unique_ptr<Oracle> oracle);
  void add_invariant(NamedInvariant invariant);

  [[nodiscard]] Life& life(WorkerId worker);
  [[nodiscard]] const RunReport& report() const { return report_; }
  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] bool failed() const { return recorder_.findings().first().has_value(); }
  [[nodiscard]] net_fake::Network& network() { return network_; }
  [[nodiscard]] EventQueue& queue() { return world_.queue; }
  [[nodiscard]] KeyedDecisions& decisions() { return decisions_; }

  // The life whose event runs.
  [[nodiscard]] std::optional<LifeId> running();
  [[nodiscard]] std::shared_ptr<const RunPulse> pulse() const { return pulse_; }
  [[nodiscard]] Duration watchdog() const { return options_.watchdog; }
  // The command that repeats the run, or what to say in its place.
  [[nodiscard]] std::string reproduction() const;

 private:
  // Actions are events: their ticket is their place in the list.
  WorkerId worker(uint64_t) const override { return WorkerId{UINT32_MAX}; }
  bool due(uint64_t ticket) const override { return static_cast<bool>(actions_[ticket]); }
  void happen(uint64_t ticket) override {
    std::exchange(actions_[ticket], nullptr)();
    look_outside();
  }

  // For a debugger.
  [[nodiscard]] std::string describe_workers() const override;
  [[nodiscard]] std::string describe_worker(uint32_t rank,
                                            const std::vector<fibers::StackView>& views) const;
  [[nodiscard]] std::vector<fibers::StackView> stacks() const override;

  void run_event(const EventQueue::Event& next, WorkerId worker);
  [[nodiscard]] std::shared_ptr<device::Machine> make_devices(const LifeId& life);
  [[nodiscard]] uint64_t draw_copied_at_once(const LifeId& life);
  [[nodiscard]] std::shared_ptr<DeviceLending> make_lending(
      const LifeId& life, std::shared_ptr<device::Machine> devices);
  [[nodiscard]] NodeOptions node_options(WorkerId worker, uint32_t life);
  [[nodiscard]] std::vector<WorkerId> living_beside(WorkerId worker) const;
  [[nodiscard]] Duration least_peer_timeout();
  // A strategy holds nothing back for longer than a small part of what makes a peer lost: a
  // deadline that is armed anew may be held back three times, and must still come within the
  // oracles' slack.
  [[nodiscard]] Duration window() const { return peer_timeout_ / 64; }
  [[nodiscard]] net_fake::NetworkOptions network_options() const;
  [[nodiscard]] std::optional<PlannedCrash> crash_due(WorkerId worker);
  void make_machines();
  void add_judge(std::unique_ptr<Oracle> oracle);
  void add_judges();
  void lie();
  void main_ended(const LifeId& life);
  void calm();
  void check(bool idle);
  [[nodiscard]] bool is_check_due(Instant next) const;
  void bound_time();
  void bound_instant();
  void ask_whether_to_go_on();
  void judge_values();
  void judge_mains();
  void note_waits(const Life& ended);
  void drain();
  void finish();
  [[nodiscard]] ClusterView view(bool idle) const;
  [[nodiscard]] bool may_be_silent() const {
    return mad_ || given_up_ || long_pause_ || options_.long_partitions || options_.long_pauses ||
           network_.told_by_hand();
  }
  [[nodiscard]] bool untroubled() const {
    const bool may_lose_each_other = options_.long_partitions || options_.long_pauses;
    const bool has_faults = options_.faults != FaultLevel::none || may_lose_each_other;
    const Instant now = world_.queue.now();
    // By then each loss is noticed, and all is sent again.
    const bool is_over = calm_ && now - calm_since_ >= 2 * peer_timeout_;
    return (is_over || !has_faults) && !network_.told_by_hand() && paused_until_ <= now;
  }
  [[nodiscard]] bool disturbed() const {
    return crash_count_ > 0 || mad_ || given_up_ || returned_ || long_pause_ ||
           options_.long_partitions || options_.long_pauses;
  }
  [[nodiscard]] bool all_over();
  void report_choices();
  void fill_report();
  void add_traces();
  void record_history();
  void stop_recording_history();

  const Seed seed_;
  const Program& program_;
  const ClusterOptions options_;
  const std::vector<std::string> names_;
  const int torch_threads_before_;

  KeyedDecisions decisions_;
  std::optional<fibers::StackPool> own_stacks_;
  HeapPool pool_{options_.devices > 0 ? device::pinned_memory() : nullptr};
  std::shared_ptr<LoanBook> loans_;  // null: nobody can lend
  World world_;
  const Duration peer_timeout_;  // the shortest of all workers
  FaultPlan plan_;
  std::unique_ptr<Strategy> strategy_;  // null: the order of instants
  Profile profile_;                     // empty unless it is asked for
  std::unique_ptr<Machines> machines_;  // null: none is ever busy
  std::unique_ptr<MadWorker> mad_;      // null: none is
  EventCollector recorder_;
  std::optional<EventLines> lines_;
  std::optional<HistoryRecorder> history_;
  std::vector<std::unique_ptr<Oracle>> oracles_;
  std::vector<NamedInvariant> invariants_;
  uint64_t turns_judged_ = 0;  // of the program's code: after them the invariants held
  net_fake::Network network_;
  std::vector<Disk> disks_;                                // by worker
  std::vector<std::vector<std::unique_ptr<Life>>> lives_;  // by worker
  size_t over_before_ = 0;                                 // all workers before this one are over
  std::vector<std::function<void()>> actions_;
  size_t storm_end_ = 0;    // of them
  Instant acts_until_{};    // when the last of them happens
  Instant paused_until_{};  // by the test

  std::vector<PlannedCrash> crashes_;   // still to come
  std::vector<uint64_t> decisions_of_;  // events so far, by worker
  uint64_t restarts_pending_ = 0;
  uint64_t crash_count_ = 0;
  bool given_up_ = false;    // somebody was made to give up a peer
  bool returned_ = false;    // a worker that had left comes again
  bool long_pause_ = false;  // one that a test asked for has outlasted `peer_timeout`
  uint64_t until_check_ = 0;
  Instant checked_at_{};
  Instant instant_{};  // of the last event
  uint64_t events_in_instant_ = 0;
  uint64_t events_ = 0;
  bool begun_ = false;
  bool calm_ = false;
  Instant calm_since_{};
  bool finished_ = false;
  Instant over_at_{};                  // when the last main ended
  std::vector<NodeWaits> waits_seen_;  // see make_deadlock
  // By worker: who waited for what when its main failed because a call had no answer in time, if
  // executions waited in primitives of the program's.
  std::vector<std::string> waits_at_timeout_ = std::vector<std::string>(names_.size());
  std::optional<NotedThrows> throws_;  // if exceptions are traced
  const std::shared_ptr<RunPulse> pulse_ = std::make_shared<RunPulse>();
  RunReport report_;
  const fibers::Inspection inspection_{*this};
};

}  // namespace rehearsal::sim
