#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/error.h"
#include "core/base/runtime.h"

namespace rehearsal::doubles {

class TestRuntime;

// Virtual time and what is left to do, for one test: it all happens on the test's own stack.
class TestWorld {
 public:
  [[nodiscard]] Instant now() const { return now_; }

  // Asked when no body is left to run, before time passes: deliver a message, for example. False:
  // there was nothing to do.
  void set_idle(std::function<bool()> idle) { idle_ = std::move(idle); }

  // Runs one pool body, or what the idle hook has, or the earliest timer. False: nothing is left.
  bool step();

  // Runs bodies and the idle hook until neither has anything to do. No time passes.
  void settle() {
    while (run_body() || (idle_ && idle_())) {
    }
  }

  // Lets time pass: settles, and fires each timer that is due at its instant.
  void advance(Duration duration);

  // Fires the timers that are due; runs nothing else.
  void fire_due_timers() {
    while (!timers_.empty() && timers_.begin()->first.first <= now_) fire_first();
  }

  // Nothing runs for so long: what was due is late.
  void pause(Duration duration) { now_ += duration; }

  [[nodiscard]] size_t timers() const { return timers_.size(); }

 private:
  friend class TestRuntime;
  struct Timer {
    TestRuntime* runtime;
    Task task;
  };
  struct Body {
    TestRuntime* runtime;
    Execution* execution;
    Task task;
  };
  bool run_body();
  void fire_first();

  Instant now_{};
  std::function<bool()> idle_;
  std::deque<Body> bodies_;
  std::map<std::pair<Instant, uint64_t>, Timer> timers_;
  uint64_t next_timer_ = 1;
  uint64_t fired_ = 0;
};

// The Runtime of one node of a test. The strand runs what is posted at once; inline bodies run when
// it is left, pool bodies when the world steps, on the stack of whoever makes it step. A stack that
// parks makes the world step until it is woken: waits of one test must nest.
class TestRuntime final : public Runtime, public Executions {
 public:
  explicit TestRuntime(TestWorld& world) : world_(world) {}

  Instant now() const override { return world_.now_; }
  TimerId call_at(Instant when, Task task) override {
    const uint64_t number = world_.next_timer_++;
    world_.timers_.emplace(std::pair(std::max(when, now()), number),
                           TestWorld::Timer{this, std::move(task)});
    return TimerId{number};
  }
  void cancel(TimerId timer) override {
    std::erase_if(world_.timers_,
                  [&](const auto& entry) { return entry.first.second == timer.value; });
  }

  void post(Task task) override {
    tasks_.push_back(std::move(task));
    if (on_strand_) return;
    on_strand_ = true;
    std::vector<Task> done;
    while (!tasks_.empty()) {
      done.push_back(std::move(tasks_.front()));
      tasks_.pop_front();
      done.back()();
    }
    on_strand_ = false;
    done.clear();  // The captures die off the strand.
    run_inline_bodies();
  }

  void execute(Execution& execution, StackPlacement placement, Task body) override {
    REHEARSAL_CHECK(on_strand_);
    if (placement == StackPlacement::pool)
      world_.bodies_.push_back({this, &execution, std::move(body)});
    else
      inline_bodies_.push_back({&execution, std::move(body), placement});
  }

  ParkOutcome park(Waiter& waiter) override {
    if (!may_park()) return ParkOutcome::would_park;
    const uint64_t timers = world_.fired_ + kTimersMax;
    while (!waiter.woken && !killed_)
      if (!world_.step() || world_.fired_ > timers)
        throw std::logic_error("nothing will ever wake this stack");
    return killed_ ? ParkOutcome::killed : ParkOutcome::woken;
  }
  void wake(Waiter& waiter) override {
    REHEARSAL_CHECK(on_strand_);
    if (waiter.by_code) return;
    REHEARSAL_CHECK(!waiter.woken);
    waiter.woken = true;
  }
  bool wake_by_code(Waiter& waiter) override {
    if (waiter.woken) return false;
    return waiter.woken = waiter.by_code = true;
  }

  Execution* running() const override { return on_strand_ ? nullptr : running_; }
  uint64_t& next_node() const override { return next_node_; }
  bool may_park() const override { return !on_strand_ && !inline_running_; }

  // The test's own code is this execution from now on.
  void run_as(Execution* execution) { running_ = execution; }
  void kill() { killed_ = true; }
  [[nodiscard]] bool on_strand() const { return on_strand_; }

 private:
  friend class TestWorld;

  // Timers that fire while one stack is parked: beyond that they only tick.
  static constexpr uint64_t kTimersMax = 100000;

  struct InlineBody {
    Execution* execution;
    Task task;
    StackPlacement placement;  // inline_ or at_once
  };

  void run_inline_bodies() {
    if (inline_running_) return;
    while (!inline_bodies_.empty()) {
      InlineBody body = std::move(inline_bodies_.front());
      inline_bodies_.pop_front();
      inline_running_ = body.placement == StackPlacement::inline_;
      run(*body.execution, std::move(body.task));
      inline_running_ = false;
    }
  }

  void run(Execution& execution, Task body) {
    if (killed_) return;
    Execution* const before = std::exchange(running_, &execution);
    try {
      body();
    } catch (const NodeKilled&) {
    }
    body = nullptr;
    running_ = before;
  }

  TestWorld& world_;
  bool on_strand_ = false;
  bool inline_running_ = false;
  bool killed_ = false;
  Execution* running_ = nullptr;
  mutable uint64_t next_node_ = 0;
  std::deque<Task> tasks_;
  std::deque<InlineBody> inline_bodies_;
};

inline bool TestWorld::run_body() {
  if (bodies_.empty()) return false;
  Body body = std::move(bodies_.front());
  bodies_.pop_front();
  const bool was_inline = std::exchange(body.runtime->inline_running_, false);
  body.runtime->run(*body.execution, std::move(body.task));
  body.runtime->inline_running_ = was_inline;
  return true;
}

inline void TestWorld::fire_first() {
  ++fired_;
  auto entry = timers_.extract(timers_.begin());
  now_ = std::max(now_, entry.key().first);
  Timer timer = std::move(entry.mapped());
  timer.runtime->post(std::move(timer.task));
}

inline bool TestWorld::step() {
  if (run_body() || (idle_ && idle_())) return true;
  if (timers_.empty()) return false;
  fire_first();
  return true;
}

inline void TestWorld::advance(Duration duration) {
  const Instant end = now_ + duration;
  settle();
  while (!timers_.empty() && timers_.begin()->first.first <= end) {
    fire_first();
    settle();
  }
  now_ = end;
}

}  // namespace rehearsal::doubles
