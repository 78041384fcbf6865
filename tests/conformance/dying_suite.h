#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/conformance/runtime_suite.h"

// The requirements on every Runtime for what dies: bodies that run at once, and code that
// terminates. Instantiated as RuntimeSuite is, with the same Worlds.
namespace rehearsal::conformance {

template <class World>
class DyingSuite : public RuntimeSuite<World> {};

TYPED_TEST_SUITE_P(DyingSuite);

TYPED_TEST_P(DyingSuite, ABodyThatRunsAtOnceMayPark) {
  // Method: started by a task that a thread of this test posts, and by one that a body posts.
  for (const bool by_a_body : {false, true}) {
    std::vector<std::string> order;
    Execution* seen = nullptr;
    typename TestFixture::Done done = false;
    Execution at_once({{1}, {1, 1}, 1}, "at once", Seed{1});
    const auto start = [&] {
      this->runtime().execute(at_once, StackPlacement::at_once, [&] {
        order.push_back("begins");
        seen = this->executions().running();
        EXPECT_TRUE(this->executions().may_park());
        Waiter waiter;
        this->runtime().post([&] {
          this->runtime().call_at(this->runtime().now() + std::chrono::milliseconds(20), [&] {
            order.push_back("wakes");
            this->runtime().wake(waiter);
          });
        });
        EXPECT_EQ(this->runtime().park(waiter), ParkOutcome::woken);
        order.push_back("goes on");
        this->runtime().post([&done] { done = true; });
      });
      order.push_back("task");
    };
    if (by_a_body)
      this->execute(StackPlacement::pool, [&] { this->runtime().post(start); });
    else
      this->on_strand(start);
    ASSERT_TRUE(this->until(done));
    EXPECT_EQ(seen, &at_once);
    EXPECT_EQ(order, (std::vector<std::string>{"task", "begins", "wakes", "goes on"}));
  }
}

TYPED_TEST_P(DyingSuite, BodiesThatStartEachOtherDoNotRunOnTopOfEachOther) {
  // Method: more of them than there may be stacks.
  constexpr int kBodies = 40000;
  std::atomic<int> ran = 0;
  Execution at_once({{1}, {1, 1}, 1}, "at once", Seed{1});
  std::function<void()> start = [&] {
    this->runtime().execute(at_once, StackPlacement::at_once, [&] {
      if (++ran < kBodies) this->runtime().post([&] { start(); });
    });
  };
  this->execute(StackPlacement::pool, [&] { this->runtime().post([&] { start(); }); });
  EXPECT_TRUE(this->until_count(ran, kBodies));
  this->on_strand([] {});
}

TYPED_TEST_P(DyingSuite, CodeThatTerminatesEndsItsStackOnlyWhereItIsTold) {
  for (const StackPlacement placement : {StackPlacement::pool, StackPlacement::at_once}) {
    std::string text;
    typename TestFixture::Done told = false;
    Execution failing({{1}, {1, 1}, 1}, "failing", Seed{1});
    failing.when_terminated = [&](const std::exception_ptr& thrown) {
      try {
        std::rethrow_exception(thrown);
      } catch (const std::runtime_error& error) {
        text = error.what();
      }
      this->runtime().post([&told] { told = true; });
    };
    this->on_strand([&] {
      this->runtime().execute(failing, placement, [] {
        const AtDeath dies([] { throw std::runtime_error("it may not leave"); });
      });
    });
    ASSERT_TRUE(this->until(told));
    EXPECT_EQ(text, "it may not leave");
    this->execute_and_wait(StackPlacement::pool, [] {});
  }
}

TYPED_TEST_P(DyingSuite, WhatDiesAtOnceRunsAlsoWhenKilled) {
  if constexpr (!TypeParam::kKills) {
    GTEST_SKIP() << "this runtime ends with its process";
  } else {
    std::atomic<int> ran = 0;
    Execution before({{1}, {9, 9}, 3}, "before", Seed{1});
    Execution after({{1}, {9, 9}, 4}, "after", Seed{1});
    const auto body = [&] {
      Waiter waiter;
      if (this->runtime().park(waiter) != ParkOutcome::killed) return;
      ++ran;
      throw NodeKilled{};
    };
    this->on_strand([&] { this->runtime().execute(before, StackPlacement::at_once, body); });
    this->world.kill();
    EXPECT_EQ(ran, 1);
    this->on_strand([&] { this->runtime().execute(after, StackPlacement::at_once, body); });
    EXPECT_TRUE(this->until_count(ran, 2));
  }
}

REGISTER_TYPED_TEST_SUITE_P(DyingSuite, ABodyThatRunsAtOnceMayPark,
                            BodiesThatStartEachOtherDoNotRunOnTopOfEachOther,
                            CodeThatTerminatesEndsItsStackOnlyWhereItIsTold,
                            WhatDiesAtOnceRunsAlsoWhenKilled);

}  // namespace rehearsal::conformance
