#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/runtime.h"
#include "core/base/stream_set.h"
#include "core/fibers/default_generator.h"
#include "real_net/runtime/poller.h"
#include "real_net/runtime/polling_role.h"
#include "real_net/runtime/spin_budget.h"
#include "real_net/runtime/strand_queue.h"
#include "real_net/runtime/thread_record.h"
#include "real_net/runtime/timer_table.h"

namespace rehearsal::real {

struct RuntimeOptions {
  // Threads that run executions. Zero: executions are fibers of the main thread (see MainThread)
  // and run while it waits.
  uint32_t worker_threads = 2;
  // A waiting thread polls without sleeping for this long at most; zero: it sleeps at once. So it
  // does where fewer than two processors may be used, or fewer than there are workers on the
  // machine that this one is linked to, itself included.
  Duration spin_max = std::chrono::microseconds(60);
  // LibTorch's intra-op threads in every thread of the runtime.
  int torch_threads = 1;
  // Of which each stack has a current one, and a current stream of each.
  DevicesHere devices;
  // Named in the last line of a process that has no memory left; may be empty.
  std::string worker;
};

// The Runtime over real threads. See the README for who does what.
//
// Any thread may post and park; who posts holds a reference to the runtime meanwhile. A thread that
// waits polls the network; while none does, the relief thread does. Timers are run by whoever
// polls. The clock is the monotonic one.
//
// A process that finds no memory in the middle of the protocol, where nothing can be undone, says
// so in one line on standard error and ends with exit status 1.
class RealRuntime final : public Runtime, public Executions {
 public:
  explicit RealRuntime(const RuntimeOptions& options);
  // REQUIRES: no execution is live; other threads are not inside. Stops first.
  ~RealRuntime() override;
  RealRuntime(const RealRuntime&) = delete;
  RealRuntime& operator=(const RealRuntime&) = delete;

  [[nodiscard]] Instant now() const override;
  TimerId call_at(Instant when, Task task) override;
  void cancel(TimerId timer) override;
  void post(Task task) override;
  void execute(Execution& execution, StackPlacement placement, Task body) override;
  [[nodiscard]] ParkOutcome park(Waiter& waiter) override;
  void wake(Waiter& waiter) override;
  bool wake_by_code(Waiter& waiter) override;

  [[nodiscard]] Execution* running() const override;
  [[nodiscard]] uint64_t& next_node() const override { return fibers::next_node_of_running(); }
  [[nodiscard]] bool may_park() const override;
  [[nodiscard]] std::unique_ptr<AdoptedThread> adopt_thread(Execution& execution) const override;

  // The network's events. Handlers run off the strand on the thread that polls.
  [[nodiscard]] Poller& poller() { return poller_; }

  // `flush` runs on the strand before it is released, whenever tasks have run: output leaves in one
  // piece. Set before anything is posted, or on the strand.
  void set_flush(Task flush) { flush_ = std::move(flush); }

  // The calling thread runs `execution`, a worker's main, for the guard's life. With no worker
  // threads it hosts the executions, too.
  class MainGuard {
   public:
    MainGuard(RealRuntime& runtime, Execution& execution);
    ~MainGuard();
    MainGuard(const MainGuard&) = delete;
    MainGuard& operator=(const MainGuard&) = delete;

   private:
    RealRuntime& runtime_;
    const bool hosts_;
    const fibers::ScopedExecution execution_;
  };
  [[nodiscard]] MainGuard register_main(Execution& execution) { return {*this, execution}; }

  // Executions with a stack of their own that have not ended.
  [[nodiscard]] size_t live_executions() const;
  // Their labels, for people.
  [[nodiscard]] std::vector<std::string> live_labels() const;

  // Waits off the strand, for `limit` at most, until no execution is live. Whether that is so.
  [[nodiscard]] bool wait_for_executions(Duration limit);

  // From now on every park answers `killed`; timers that are set and bodies that have not started
  // never run. Any thread.
  void kill();

  // Ends the runtime's own threads, and runs what is left for them on the calling one. REQUIRES: no
  // execution is live. Later posts still run, on the threads that make them; timers that are set
  // never run, and the network rests.
  void stop();

  // So many peers that this worker is linked to are on its machine. Any thread.
  void set_neighbours(int count) { neighbours_.store(count, std::memory_order_relaxed); }

  // How its threads have waited, so far.
  struct PollingCounts {
    uint64_t looks = 0;   // at the network, also those that sleep
    uint64_t yields = 0;  // of the processor, between two looks of a poller that does not sleep
    uint64_t sleeps = 0;  // in the network
    uint64_t wakes = 0;   // of a thread by another
  };
  [[nodiscard]] PollingCounts polling_counts() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Nudges = PollingRole::Nudges;

  // The strand (real_runtime.cc).
  void run_held_strand();
  void run_strand(ThreadRecord& me) noexcept;
  void run_tasks(ThreadRecord& me);
  [[noreturn]] void leave_without_memory() const;
  void run_due_timers(ThreadRecord& me);
  void clean_up(ThreadRecord& me);
  void run_inline_bodies(ThreadRecord& me);
  void run_inline(ThreadRecord& me, InlineBody body);
  void run_at_once(ThreadRecord& me, InlineBody body);
  void run_left_bodies();
  void drop_timers();

  // Waiting (real_waiting.cc).
  void wait_here(ThreadRecord& me, UniqueFunction<bool()> done);
  bool do_other_work(ThreadRecord& me, std::deque<InlineBody>& bodies, Lock& lock);
  void wait_for_news(ThreadRecord& me, Lock& lock);
  void poll_turn(ThreadRecord& me, PollingRole::Seat& seat, Lock& lock);
  [[nodiscard]] bool may_spin(const PollingRole::Seat& seat) const;
  [[nodiscard]] bool spin(const PollingRole::Seat& seat, Instant until);
  bool look(Duration limit);
  void sleep_in_network(PollingRole::Seat& seat);
  void relief_loop();
  void leave_bodies(ThreadRecord& me);
  void unlock_and_carry_out(Lock& lock, Nudges& nudges);
  void carry_out(Nudges& nudges);

  // Executions (real_executions.cc).
  [[nodiscard]] static std::unique_ptr<FiberRecord> record_of(Execution& execution, Task body);
  [[nodiscard]] bool is_a_guest(const ThreadRecord& me);
  void start_execution(std::unique_ptr<FiberRecord> fiber, Nudges& nudges);
  [[nodiscard]] ThreadRecord* choose_host(Lock& lock);
  [[nodiscard]] ThreadRecord* start_pool_thread(Lock& lock);
  void assign(ThreadRecord& host, std::unique_ptr<FiberRecord> fiber, Nudges& nudges);
  void pin(ThreadRecord& host, std::unique_ptr<FiberRecord> fiber);
  void pool_loop(ThreadRecord& me);
  void resume_fiber(ThreadRecord& me, FiberRecord& fiber);
  [[nodiscard]] bool make_fiber(ThreadRecord& me, FiberRecord& fiber);
  void end_fiber(ThreadRecord& me, FiberRecord& fiber);
  void wait_for_stack(ThreadRecord& me, FiberRecord& fiber, const Error& why);
  void try_stacks_again(Nudges& nudges);
  ParkOutcome park_fiber(FiberRecord& fiber, Waiter& waiter);
  [[nodiscard]] bool ends_park(const Waiter& waiter) const;
  void go_on(Waiter& waiter, Nudges& nudges);
  void set_up_thread() const;

  const RuntimeOptions options_;
  const std::string no_memory_;  // the line of leave_without_memory, made while there is some
  const int processors_;         // that this process may use, whole ones
  ThreadTable threads_;
  StrandQueue strand_;
  Poller poller_;
  std::atomic<uint64_t> wakes_{0};
  std::atomic<uint64_t> yields_{0};
  std::atomic<uint64_t> sleeps_{0};
  std::atomic<int> neighbours_{0};
  std::atomic<int> computing_{0};  // threads that run an execution

  // The strand's.
  TimerTable timers_;
  Task flush_;
  ThreadRecord* strand_holder_ = nullptr;
  std::vector<std::thread> pool_threads_;

  mutable std::mutex mutex_;  // guards what follows, and the marked parts of ThreadRecords
  PollingRole::Seat relief_seat_;
  PollingRole role_{relief_seat_};
  SpinBudget spin_;
  std::deque<InlineBody> left_bodies_;  // that their threads had no time for
  std::vector<ThreadRecord*> hosts_;
  ThreadRecord* main_ = nullptr;  // hosts what no other thread can be started for; null: none does
  std::vector<std::unique_ptr<FiberRecord>>
      unassigned_;  // executions before there is a main thread
  std::vector<PollingRole::Seat*> idle_watchers_;
  size_t live_ = 0;
  size_t stackless_ = 0;
  bool stopping_ = false;
  std::atomic<bool> killed_ = false;

  std::thread relief_;
};

}  // namespace rehearsal::real
