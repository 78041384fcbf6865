#pragma once

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/execution.h"
#include "core/base/runtime.h"

// The requirements on every Runtime. Instantiate it with a World:
//
//   INSTANTIATE_TYPED_TEST_SUITE_P(Name, RuntimeSuite, World);
//
// A World is one Runtime and time:
//   Runtime& runtime();
//   const Executions& executions();
//   bool advance_until(const std::function<bool()>& holds);  // false: not within a fair time
//   static constexpr bool kKills;   // whether the Runtime can be killed
//   void kill();                    // if it can: returns when every stack has unwound
// The notes of tests lie in atomics or are read after `advance_until`, so that threads may be
// behind it.
namespace rehearsal::conformance {

// Runs a function when it dies.
class AtDeath {
 public:
  explicit AtDeath(std::function<void()> last_words) : last_words_(std::move(last_words)) {}
  AtDeath(AtDeath&& other) noexcept : last_words_(std::move(other.last_words_)) {
    other.last_words_ = nullptr;
  }
  AtDeath& operator=(AtDeath&&) = delete;
  ~AtDeath() {
    if (last_words_) last_words_();
  }

 private:
  std::function<void()> last_words_;
};

template <class World>
class RuntimeSuite : public testing::Test {
 protected:
  using Done = std::atomic<bool>;

  // Runs `task` on the strand and waits until it has run.
  void on_strand(std::function<void()> task) {
    Done done = false;
    runtime().post([&task, &done] {
      task();
      done = true;
    });
    ASSERT_TRUE(until(done));
  }
  bool until(const Done& done) {
    return world.advance_until([&done] { return done.load(); });
  }
  bool until_count(const std::atomic<int>& count, int least) {
    return world.advance_until([&count, least] { return count.load() >= least; });
  }
  // Starts user code; the execution lives as long as the test.
  Execution& execute(StackPlacement placement, std::function<void()> body,
                     std::string_view label = "body") {
    executions_.push_back(
        std::make_unique<Execution>(CausalId{{1}, {3, 4}, executions_.size()}, label, Seed{1}));
    Execution& execution = *executions_.back();
    on_strand([this, placement, &execution, &body] {
      runtime().execute(execution, placement, [body] { body(); });
    });
    return execution;
  }
  void execute_and_wait(StackPlacement placement, std::function<void()> body) {
    Done done = false;
    execute(placement, [&body, &done] {
      body();
      done = true;
    });
    ASSERT_TRUE(until(done));
  }
  Runtime& runtime() { return world.runtime(); }
  const Executions& executions() { return world.executions(); }

  std::vector<std::unique_ptr<Execution>> executions_;
  World world;
};

TYPED_TEST_SUITE_P(RuntimeSuite);

// The strand.

TYPED_TEST_P(RuntimeSuite, PostsRunInTheirOrder) {
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) this->runtime().post([&order, i] { order.push_back(i); });
  this->on_strand([] {});
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TYPED_TEST_P(RuntimeSuite, APostFromWithinATaskRunsBehindIt) {
  std::vector<std::string> order;
  typename TestFixture::Done done = false;
  this->runtime().post([&] {
    this->runtime().post([&] { order.push_back("first inner"); });
    this->runtime().post([&] {
      order.push_back("second inner");
      this->runtime().post([&] { done = true; });
    });
    order.push_back("outer");
  });
  ASSERT_TRUE(this->until(done));
  EXPECT_EQ(order, (std::vector<std::string>{"outer", "first inner", "second inner"}));
}

TYPED_TEST_P(RuntimeSuite, ClosuresDieOffTheStrand) {
  typename TestFixture::Done done = false;
  std::vector<std::string> order;
  this->runtime().post([&, last = AtDeath([&] {
                             order.push_back("closure dies");
                             this->runtime().post([&] {
                               order.push_back("posted by it");
                               done = true;
                             });
                           })] {
    this->runtime().post([&] { order.push_back("queued"); });
    order.push_back("task");
  });
  ASSERT_TRUE(this->until(done));
  EXPECT_EQ(order, (std::vector<std::string>{"task", "queued", "closure dies", "posted by it"}));
}

TYPED_TEST_P(RuntimeSuite, NobodyRunsOnTheStrandAndNothingMayParkThere) {
  ParkOutcome outcome = ParkOutcome::woken;
  this->on_strand([this, &outcome] {
    EXPECT_EQ(this->executions().running(), nullptr);
    EXPECT_FALSE(this->executions().may_park());
    Waiter waiter;
    outcome = this->runtime().park(waiter);
  });
  EXPECT_EQ(outcome, ParkOutcome::would_park);
}

TYPED_TEST_P(RuntimeSuite, TimeNeverGoesBack) {
  Instant last = this->runtime().now();
  for (int i = 0; i < 50; ++i) {
    this->on_strand([&] {
      EXPECT_GE(this->runtime().now(), last);
      last = this->runtime().now();
    });
  }
}

// Timers.

TYPED_TEST_P(RuntimeSuite, TimersRunInTheOrderOfTheirInstantsAndNotEarly) {
  std::vector<int> order;
  std::atomic<int> ran = 0;
  this->on_strand([&] {
    const Instant start = this->runtime().now();
    for (const int place : {3, 1, 2, 0}) {
      const Instant when = start + std::chrono::milliseconds(10 * place + 5);
      this->runtime().call_at(when, [&, place, when] {
        EXPECT_GE(this->runtime().now(), when);
        order.push_back(place);
        ++ran;
      });
    }
  });
  ASSERT_TRUE(this->until_count(ran, 4));
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TYPED_TEST_P(RuntimeSuite, APastInstantIsDueAtOnceButBehindThePresentTask) {
  std::atomic<int> ran = 0;
  bool during = true;
  this->on_strand([&] {
    this->runtime().call_at(this->runtime().now() - std::chrono::seconds(1), [&] { ++ran; });
    during = ran > 0;
  });
  EXPECT_FALSE(during);
  EXPECT_TRUE(this->until_count(ran, 1));
}

TYPED_TEST_P(RuntimeSuite, ACancelledTimerDoesNotRunAndItsClosureDies) {
  std::atomic<int> ran = 0;
  std::atomic<int> died = 0;
  std::atomic<int> later = 0;
  this->on_strand([&] {
    const Instant start = this->runtime().now();
    const TimerId timer =
        this->runtime().call_at(start + std::chrono::milliseconds(5),
                                [&ran, last = AtDeath([&died] { ++died; })] { ++ran; });
    this->runtime().call_at(start + std::chrono::milliseconds(15), [&later] { ++later; });
    this->runtime().cancel(timer);
    this->runtime().cancel(timer);
  });
  EXPECT_EQ(died, 1);
  ASSERT_TRUE(this->until_count(later, 1));
  EXPECT_EQ(ran, 0);
}

TYPED_TEST_P(RuntimeSuite, CancellingATimerThatRanIsIgnoredAlsoFromWithinIt) {
  std::atomic<int> ran = 0;
  TimerId first;
  this->on_strand([&] {
    first = this->runtime().call_at(this->runtime().now(), [&] {
      this->runtime().cancel(first);
      ++ran;
    });
  });
  ASSERT_TRUE(this->until_count(ran, 1));
  this->on_strand([&] {
    this->runtime().call_at(this->runtime().now(), [&ran] { ++ran; });
    this->runtime().cancel(first);
  });
  EXPECT_TRUE(this->until_count(ran, 2));
}

TYPED_TEST_P(RuntimeSuite, ManyTimersOfWhichMostAreCancelled) {
  std::atomic<int> ran = 0;
  this->on_strand([&] {
    const Instant start = this->runtime().now();
    for (int i = 0; i < 5000; ++i) {
      const TimerId timer =
          this->runtime().call_at(start + std::chrono::microseconds(i), [&ran] { ++ran; });
      if (i % 100 != 0) this->runtime().cancel(timer);
    }
  });
  ASSERT_TRUE(this->until_count(ran, 50));
  this->on_strand([] {});
  EXPECT_EQ(ran, 50);
}

// Executions.

TYPED_TEST_P(RuntimeSuite, AnInlineBodyRunsOffTheStrandAsItsExecution) {
  Execution* seen = nullptr;
  ParkOutcome outcome = ParkOutcome::woken;
  typename TestFixture::Done done = false;
  Execution& execution = this->execute(StackPlacement::inline_, [&] {
    seen = this->executions().running();
    EXPECT_FALSE(this->executions().may_park());
    Waiter waiter;
    outcome = this->runtime().park(waiter);
    this->runtime().post([&done] { done = true; });
  });
  ASSERT_TRUE(this->until(done));
  EXPECT_EQ(seen, &execution);
  EXPECT_EQ(outcome, ParkOutcome::would_park);
}

TYPED_TEST_P(RuntimeSuite, InlineBodiesRunBehindTheTaskThatStartsThem) {
  std::vector<std::string> order;
  std::atomic<int> ran = 0;
  Execution one({{1}, {1, 1}, 1}, "one", Seed{1});
  Execution two({{1}, {1, 1}, 2}, "two", Seed{1});
  this->on_strand([&] {
    this->runtime().execute(one, StackPlacement::inline_, [&] {
      order.push_back("one");
      ++ran;
    });
    this->runtime().execute(two, StackPlacement::inline_, [&] {
      order.push_back("two");
      ++ran;
    });
    order.push_back("task");
  });
  ASSERT_TRUE(this->until_count(ran, 2));
  EXPECT_EQ(order, (std::vector<std::string>{"task", "one", "two"}));
}

TYPED_TEST_P(RuntimeSuite, APoolBodyRunsAsItsExecutionAndMayPark) {
  Execution* seen = nullptr;
  Execution* on_strand = nullptr;
  Execution* after = nullptr;
  typename TestFixture::Done done = false;
  Execution& execution = this->execute(StackPlacement::pool, [&] {
    seen = this->executions().running();
    EXPECT_TRUE(this->executions().may_park());
    this->runtime().post([&] { on_strand = this->executions().running(); });
    after = this->executions().running();
    this->runtime().post([&done] { done = true; });
  });
  ASSERT_TRUE(this->until(done));
  EXPECT_EQ(seen, &execution);
  EXPECT_EQ(on_strand, nullptr);
  EXPECT_EQ(after, &execution);
}

TYPED_TEST_P(RuntimeSuite, AParkEndsByAWakeThatCameBefore) {
  ParkOutcome outcome = ParkOutcome::would_park;
  this->execute_and_wait(StackPlacement::pool, [&] {
    Waiter waiter;
    this->runtime().post([&] { this->runtime().wake(waiter); });
    outcome = this->runtime().park(waiter);
  });
  EXPECT_EQ(outcome, ParkOutcome::woken);
}

TYPED_TEST_P(RuntimeSuite, AParkEndsByAWakeThatComesLater) {
  ParkOutcome outcome = ParkOutcome::would_park;
  Duration slept{};
  this->execute_and_wait(StackPlacement::pool, [&] {
    Waiter waiter;
    const Instant start = this->runtime().now();
    this->runtime().post([&, start] {
      this->runtime().call_at(start + std::chrono::milliseconds(20),
                              [&] { this->runtime().wake(waiter); });
    });
    outcome = this->runtime().park(waiter);
    slept = this->runtime().now() - start;
  });
  EXPECT_EQ(outcome, ParkOutcome::woken);
  EXPECT_GE(slept, std::chrono::milliseconds(20));
}

TYPED_TEST_P(RuntimeSuite, HundredParkedBodiesAreWokenInAnyOrder) {
  constexpr int kBodies = 100;
  std::vector<Waiter*> waiters(kBodies);
  std::atomic<int> parked = 0;
  std::atomic<int> ended = 0;
  for (int i = 0; i < kBodies; ++i)
    this->execute(StackPlacement::pool, [&, i] {
      Waiter waiter;
      this->runtime().post([&] {
        waiters[static_cast<size_t>(i)] = &waiter;
        ++parked;
      });
      EXPECT_EQ(this->runtime().park(waiter), ParkOutcome::woken);
      ++ended;
    });
  ASSERT_TRUE(this->until_count(parked, kBodies));
  EXPECT_EQ(ended, 0);
  this->on_strand([&] {
    for (int i = 0; i < kBodies; ++i)
      this->runtime().wake(*waiters[static_cast<size_t>(i * 37 % kBodies)]);
  });
  EXPECT_TRUE(this->until_count(ended, kBodies));
}

TYPED_TEST_P(RuntimeSuite, AnInlineBodyStartedByAnExecutionRunsAsItself) {
  Execution inner({{1}, {9, 9}, 1}, "inner", Seed{1});
  Execution* seen = nullptr;
  Execution* after = nullptr;
  std::atomic<int> ran = 0;
  Execution& outer = this->execute(StackPlacement::pool, [&] {
    this->runtime().post([&] {
      this->runtime().execute(inner, StackPlacement::inline_, [&] {
        seen = this->executions().running();
        ++ran;
      });
    });
    after = this->executions().running();
    ++ran;
  });
  ASSERT_TRUE(this->until_count(ran, 2));
  EXPECT_EQ(seen, &inner);
  EXPECT_EQ(after, &outer);
}

TYPED_TEST_P(RuntimeSuite, NodeKilledEndsABodySilently) {
  std::atomic<int> ran = 0;
  for (const StackPlacement placement : {StackPlacement::inline_, StackPlacement::pool})
    this->execute(placement, [&] {
      ++ran;
      throw NodeKilled{};
    });
  ASSERT_TRUE(this->until_count(ran, 2));
  this->on_strand([&] { ++ran; });
  EXPECT_EQ(ran, 3);
}

// LibTorch's state.

TYPED_TEST_P(RuntimeSuite, TheStrandDoesNotRunUnderItsCallersGuards) {
  bool on_strand = false;
  bool inline_body = false;
  bool after = true;
  Execution inner({{1}, {9, 9}, 2}, "inner", Seed{1});
  this->execute_and_wait(StackPlacement::pool, [&] {
    const at::NoGradGuard guard;
    this->runtime().post([&] {
      on_strand = at::GradMode::is_enabled();
      this->runtime().execute(inner, StackPlacement::inline_,
                              [&] { inline_body = at::GradMode::is_enabled(); });
    });
    after = at::GradMode::is_enabled();
  });
  this->on_strand([] {});
  EXPECT_TRUE(on_strand);
  EXPECT_TRUE(inline_body);
  EXPECT_FALSE(after);
}

TYPED_TEST_P(RuntimeSuite, AGuardHeldAcrossAParkStaysWithItsBody) {
  Waiter* parked = nullptr;
  std::atomic<int> ready = 0;
  bool held = true;
  bool other = false;
  typename TestFixture::Done done = false;
  this->execute(StackPlacement::pool, [&] {
    const at::NoGradGuard guard;
    Waiter waiter;
    this->runtime().post([&] {
      parked = &waiter;
      ++ready;
    });
    (void)this->runtime().park(waiter);
    held = !at::GradMode::is_enabled();
    this->runtime().post([&done] { done = true; });
  });
  ASSERT_TRUE(this->until_count(ready, 1));
  this->execute_and_wait(StackPlacement::pool, [&other] { other = at::GradMode::is_enabled(); });
  this->on_strand([&] { this->runtime().wake(*parked); });
  ASSERT_TRUE(this->until(done));
  EXPECT_TRUE(held);
  EXPECT_TRUE(other);
}

// Being killed.

TYPED_TEST_P(RuntimeSuite, KillingUnwindsParkedBodiesAndDropsTheRest) {
  if constexpr (!TypeParam::kKills) {
    GTEST_SKIP() << "this runtime ends with its process";
  } else {
    std::atomic<int> parked = 0;
    std::atomic<int> unwound = 0;
    std::atomic<int> ran = 0;
    std::atomic<int> died = 0;
    this->execute(StackPlacement::pool, [&] {
      const AtDeath frame([&unwound] { ++unwound; });
      Waiter waiter;
      this->runtime().post([&parked] { ++parked; });
      if (this->runtime().park(waiter) == ParkOutcome::killed) throw NodeKilled{};
      ++ran;
    });
    ASSERT_TRUE(this->until_count(parked, 1));
    Execution unstarted({{1}, {9, 9}, 3}, "unstarted", Seed{1});
    this->on_strand([&] {
      this->runtime().call_at(this->runtime().now() + std::chrono::seconds(1),
                              [&ran, last = AtDeath([&died] { ++died; })] { ++ran; });
      this->runtime().execute(unstarted, StackPlacement::pool,
                              [&ran, last = AtDeath([&died] { ++died; })] { ++ran; });
    });
    this->world.kill();
    EXPECT_EQ(unwound, 1);
    EXPECT_EQ(died, 2);
    EXPECT_EQ(ran, 0);
    this->on_strand([&ran] { ++ran; });
    EXPECT_EQ(ran, 1);
  }
}

REGISTER_TYPED_TEST_SUITE_P(
    RuntimeSuite, PostsRunInTheirOrder, APostFromWithinATaskRunsBehindIt, ClosuresDieOffTheStrand,
    NobodyRunsOnTheStrandAndNothingMayParkThere, TimeNeverGoesBack,
    TimersRunInTheOrderOfTheirInstantsAndNotEarly, APastInstantIsDueAtOnceButBehindThePresentTask,
    ACancelledTimerDoesNotRunAndItsClosureDies, CancellingATimerThatRanIsIgnoredAlsoFromWithinIt,
    ManyTimersOfWhichMostAreCancelled, AnInlineBodyRunsOffTheStrandAsItsExecution,
    InlineBodiesRunBehindTheTaskThatStartsThem, APoolBodyRunsAsItsExecutionAndMayPark,
    AParkEndsByAWakeThatCameBefore, AParkEndsByAWakeThatComesLater,
    HundredParkedBodiesAreWokenInAnyOrder, AnInlineBodyStartedByAnExecutionRunsAsItself,
    NodeKilledEndsABodySilently, TheStrandDoesNotRunUnderItsCallersGuards,
    AGuardHeldAcrossAParkStaysWithItsBody, KillingUnwindsParkedBodiesAndDropsTheRest);

}  // namespace rehearsal::conformance
