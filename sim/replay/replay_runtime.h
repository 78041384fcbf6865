#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/checkpoints.h"
#include "core/base/runtime.h"
#include "core/base/wait_view.h"
#include "core/fibers/default_generator.h"
#include "core/fibers/fiber.h"
#include "core/fibers/stack_pool.h"
#include "record/code_names.h"
#include "record/item.h"

namespace rehearsal::sim {

// The Runtime of a worker that is replayed from a record: one thread, and nothing happens that the
// record does not ask for. Every stack is a fiber, also one that ran inline. It stops at each task
// that it posts, until the record says that the strand took that task; only when the next one of
// the same stack is wanted does it go on. So what stacks do to each other by the program's own
// memory comes in the order in which the record has the tasks that enclose it.
//
// A task that is wanted may come from another stack than the record says: which of two owners lets
// go last, and so runs a destructor, depends on threads. A task posted by a destructor has a tag,
// so that it is known by its code: it is then taken from a giver that has it and is not expected to
// give it.
class ReplayRuntime final : public Runtime, public Executions, public Checkpoints {
 public:
  using Source = record::Source;

  // The strand's readings come from the record's items; the replayer has the next one.
  using StrandClock = UniqueFunction<Instant()>;
  explicit ReplayRuntime(StrandClock strand_clock);
  // REQUIRES: `finish` was called.
  ~ReplayRuntime() override;

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

  // Nothing is written; what is read is what the record has.
  Status save(const std::string& name, const std::string& bytes) override;
  Result<std::optional<std::string>> load(const std::string& name) override;

  // Before anything runs: the record has such a post, in its order.
  void expect(const record::Posted& posted);

  // Whether its stacks have woken each other, by primitives of the program's own, on several
  // threads: in the order of the record's tasks, which is not all that they did.
  [[nodiscard]] bool woke_beside_threads() const { return woke_beside_threads_; }

  // The stack of the worker's main; it starts when a task of it is wanted.
  void start_main(Execution& execution, Task body);

  // The task of the next such post; nothing if nobody makes it.
  [[nodiscard]] std::optional<Task> take(const record::Posted& posted);
  // The task of a timer that fires now; nothing if there is no such timer.
  [[nodiscard]] std::optional<Task> take_timer(uint64_t timer);

  // Runs `task` on the strand, then what must come right behind it.
  template <class Body>
  void on_strand(Body&& task) {
    begin_strand();
    task();
    end_strand();
  }
  // The closure of a task that has run.
  void drop_task(Source source, Task task);

  // The record is over: each stack that can go on does so, to its next post or park. The worker's
  // last acts off its strand happen again.
  void run_out();

  // For a debugger: its stacks, of this worker, which waits so.
  [[nodiscard]] std::vector<fibers::StackView> stacks(const std::string& worker,
                                                      const WaitViews& waits,
                                                      const std::vector<std::string>& names) const;

  // Ends every stack; `kill_node` runs on the strand before, `let_go` after it, which drops what is
  // left.
  void finish(Task kill_node, Task let_go);

 private:
  struct Stack;
  struct Offer {
    uint64_t code = 0;
    Task task;
  };
  // The tasks that a stack, or another poster, has to give, and those that the record expects of
  // it.
  struct Giver {
    std::deque<Offer> offers;
    std::deque<uint64_t> expected;  // codes, in order
    std::deque<record::Reading> readings;
    std::unique_ptr<Stack> stack;  // null: it is none, or has ended
    Task closure;                  // to be destroyed when a task of its destructor is wanted
  };

  void begin_strand();
  void end_strand();
  [[nodiscard]] std::optional<Task> take_from(Giver& giver, uint64_t code);
  [[nodiscard]] static bool is_expected(const Giver& giver, uint64_t code);
  [[nodiscard]] std::optional<Task> take_elsewhere(Source source, uint64_t code);
  [[nodiscard]] static std::optional<Task> take_stray(Giver& giver, uint64_t code);
  [[nodiscard]] static std::optional<Task> take_alike(Giver& giver, uint64_t code);
  void add_stack(Source source, Execution& execution, Task body);
  [[nodiscard]] std::optional<record::Reading> next_of_disk();
  [[nodiscard]] static bool can_run(const Giver& giver);
  void run(Source source, Giver& giver);
  void run_tail(Source source, Giver& giver);
  void destroy(Source source, Task task);
  void destroy_on_stack(Source source, Task task);
  [[nodiscard]] bool tells_of_nodes() const;
  void stop_here();
  void unwind(Source source, Giver& giver);

  mutable StrandClock strand_clock_;
  record::CodeNames codes_;
  fibers::StackPool stacks_;
  std::map<Source, Giver> givers_;
  std::map<uint64_t, Task> timers_;
  uint64_t timers_set_ = 0;
  uint64_t executions_begun_ = 0;
  mutable Instant last_now_{};
  bool woke_beside_threads_ = false;

  bool on_strand_ = false;
  bool ending_ = false;
  Stack* current_ = nullptr;     // whose code is running; null on the thread's own stack
  std::optional<Source> dying_;  // whose closure is being destroyed on that
  std::vector<Source> touched_;  // stacks that were started or woken on the strand
  std::vector<std::pair<Source, Task>> dropped_;  // closures to destroy off the strand
  std::vector<Task> late_tasks_;                  // that the strand posted while all ends
};

}  // namespace rehearsal::sim
