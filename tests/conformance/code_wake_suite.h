#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "tests/conformance/runtime_suite.h"

// The requirements on every Runtime for parks that user code ends, off the strand. Instantiated as
// RuntimeSuite is, with the same Worlds.
namespace rehearsal::conformance {

template <class World>
class CodeWakeSuite : public RuntimeSuite<World> {
 protected:
  // On the calling stack: lets others go on for so long.
  void pause(Duration time) {
    Waiter turn;
    this->runtime().post([&] {
      this->runtime().call_at(this->runtime().now() + time, [&] { this->runtime().wake(turn); });
    });
    EXPECT_EQ(this->runtime().park(turn), ParkOutcome::woken);
  }
};

TYPED_TEST_SUITE_P(CodeWakeSuite);

TYPED_TEST_P(CodeWakeSuite, CodeEndsAParkOnceBeforeItBeginsOrWhileItLasts) {
  for (const bool before : {true, false}) {
    Waiter waiter;
    typename TestFixture::Done done = false;
    ParkOutcome outcome = ParkOutcome::would_park;
    this->execute(StackPlacement::pool, [&] {
      if (before) this->pause(std::chrono::milliseconds(20));
      outcome = this->runtime().park(waiter);
      this->runtime().post([&done] { done = true; });
    });
    std::vector<bool> woke;
    this->execute_and_wait(StackPlacement::pool, [&] {
      if (!before) this->pause(std::chrono::milliseconds(20));
      woke.push_back(this->runtime().wake_by_code(waiter));
      woke.push_back(this->runtime().wake_by_code(waiter));
    });
    ASSERT_TRUE(this->until(done));
    EXPECT_EQ(outcome, ParkOutcome::woken);
    EXPECT_EQ(woke, (std::vector<bool>{true, false}));
    EXPECT_TRUE(waiter.by_code);
  }
}

TYPED_TEST_P(CodeWakeSuite, OfAWakeByTheStrandAndOneByCodeTheFirstCounts) {
  for (const bool code_first : {true, false}) {
    Waiter waiter;
    bool by_code = false;
    if (code_first) by_code = this->runtime().wake_by_code(waiter);
    this->on_strand([&] { this->runtime().wake(waiter); });
    if (!code_first) by_code = this->runtime().wake_by_code(waiter);
    EXPECT_EQ(by_code, code_first);
    EXPECT_EQ(waiter.by_code, code_first);
    EXPECT_TRUE(waiter.woken);
  }
}

TYPED_TEST_P(CodeWakeSuite, AParkThatLastsOutlivesAKillUntilItIsWoken) {
  if constexpr (!TypeParam::kKills) {
    GTEST_SKIP() << "this runtime ends with its process";
  } else {
    // Method: the first of two stacks waits for the second one, which wakes it as it unwinds.
    Waiter lasts(AtKill::lasts);
    std::vector<ParkOutcome> outcomes;
    std::atomic<int> parked = 0;
    this->execute(StackPlacement::pool, [&] {
      this->runtime().post([&parked] { ++parked; });
      outcomes.push_back(this->runtime().park(lasts));
    });
    this->execute(StackPlacement::pool, [&] {
      const AtDeath wakes([&] { EXPECT_TRUE(this->runtime().wake_by_code(lasts)); });
      Waiter waiter;
      this->runtime().post([&parked] { ++parked; });
      if (this->runtime().park(waiter) == ParkOutcome::killed) throw NodeKilled{};
    });
    ASSERT_TRUE(this->until_count(parked, 2));
    this->world.kill();
    EXPECT_EQ(outcomes, (std::vector<ParkOutcome>{ParkOutcome::woken}));
  }
}

REGISTER_TYPED_TEST_SUITE_P(CodeWakeSuite, CodeEndsAParkOnceBeforeItBeginsOrWhileItLasts,
                            OfAWakeByTheStrandAndOneByCodeTheFirstCounts,
                            AParkThatLastsOutlivesAKillUntilItIsWoken);

}  // namespace rehearsal::conformance
