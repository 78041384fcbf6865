#include "core/base/wait_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/monitor.h"
#include "tests/core/base/node_strand_fixture.h"

namespace rehearsal {
namespace {

TEST(Monitor, LetsOneInAtATimeInTheOrderOfTheirAsking) {
  // Three ask; each enters when the one before has left.
  Monitor monitor;
  std::vector<int> entered;
  for (int i = 0; i < 3; ++i) monitor.enter([&entered, i] { entered.push_back(i); });
  EXPECT_EQ(entered, (std::vector<int>{0}));
  EXPECT_TRUE(monitor.held());
  monitor.leave();
  EXPECT_EQ(entered, (std::vector<int>{0, 1}));
  monitor.leave();
  monitor.leave();
  EXPECT_EQ(entered, (std::vector<int>{0, 1, 2}));
  EXPECT_FALSE(monitor.held());
}

TEST(Monitor, OneThatLeavesAtOnceLetsTheNextIn) {
  // 1,000 that leave as soon as they have entered.
  Monitor monitor;
  int entered = 0;
  monitor.enter([] {});
  for (int i = 0; i < 1000; ++i)
    monitor.enter([&] {
      ++entered;
      monitor.leave();
    });
  monitor.leave();
  EXPECT_EQ(entered, 1000);
  EXPECT_FALSE(monitor.held());
}

TEST(Monitor, AQueueOfAnyLengthIsNoRecursion) {
  // Goal: as many as a peer may have queued leave on one stack. Method: a hundred thousand that
  // leave as soon as they are let in, of which each tenth asks for one more turn; all enter in the
  // order of their asking.
  constexpr int kQueued = 100'000;
  Monitor monitor;
  std::vector<int> entered;
  std::vector<int> asked(kQueued);
  for (int i = 0; i < kQueued; ++i) asked[static_cast<size_t>(i)] = i;
  monitor.enter([] {});
  for (int i = 0; i < kQueued; ++i)
    monitor.enter([&, i] {
      entered.push_back(i);
      if (i % 10 == 0) {
        asked.push_back(kQueued + i);
        monitor.enter([&, i] {
          entered.push_back(kQueued + i);
          monitor.leave();
        });
      }
      monitor.leave();
    });
  monitor.leave();
  EXPECT_TRUE(entered == asked);
  EXPECT_FALSE(monitor.held());
}

TEST(Monitor, OneThatStaysEndsTheRowOfThoseThatLeave) {
  // The second of three stays: the third enters when it has left, at a time of its own.
  Monitor monitor;
  std::vector<int> entered;
  monitor.enter([] {});
  for (const int number : {1, 2, 3})
    monitor.enter([&, number] {
      entered.push_back(number);
      if (number != 2) monitor.leave();
    });
  monitor.leave();
  EXPECT_EQ(entered, (std::vector<int>{1, 2}));
  EXPECT_TRUE(monitor.held());
  monitor.leave();
  EXPECT_EQ(entered, (std::vector<int>{1, 2, 3}));
  EXPECT_FALSE(monitor.held());
}

TEST(MonitorDeathTest, LeavingWithoutHavingEnteredIsABug) {
  Monitor monitor;
  EXPECT_DEATH(monitor.leave(), "held_");
}

// Waits are begun and ended by hand; a Waiter that was woken says so.
class WaitTableTest : public NodeStrandFixture {
 protected:
  WaitTable& waits() { return strand_->waits(); }
  static bool woken(const Wait& wait) { return wait.waiter.woken; }
};

TEST_F(WaitTableTest, AWaitEndsOnce) {
  // End it twice: the Runtime is told once, and the id names nothing afterwards.
  Wait wait;
  on_strand([&] {
    const WaitId id = waits().begin(wait);
    EXPECT_TRUE(waits().lasts(id));
    EXPECT_EQ(waits().size(), 1u);
    waits().end(id);
    EXPECT_FALSE(waits().lasts(id));
    waits().end(id);
  });
  EXPECT_TRUE(woken(wait));
  EXPECT_FALSE(wait.failure.has_value());
  EXPECT_EQ(waits().size(), 0u);
}

TEST_F(WaitTableTest, AnOldIdDoesNotEndTheWaitThatTookItsPlace) {
  Wait first;
  Wait second;
  on_strand([&] {
    const WaitId old = waits().begin(first);
    waits().end(old);
    const WaitId fresh = waits().begin(second);
    EXPECT_EQ(old.slot, fresh.slot);
    waits().end(old);
    EXPECT_FALSE(woken(second));
    EXPECT_TRUE(waits().lasts(fresh));
    EXPECT_FALSE(waits().lasts(WaitId{}));
    waits().end(fresh);
  });
  EXPECT_TRUE(woken(second));
}

TEST_F(WaitTableTest, AllFailTogetherWithTheReason) {
  std::vector<Wait> list(3);
  on_strand([&] {
    const WaitId ended = waits().begin(list[0]);
    for (int i = 1; i < 3; ++i) (void)waits().begin(list[i]);
    waits().end(ended);
    waits().fail_all(stopped());
    waits().fail_all(stopped());
  });
  EXPECT_FALSE(list[0].failure.has_value());
  for (int i = 1; i < 3; ++i) {
    EXPECT_TRUE(woken(list[i]));
    EXPECT_EQ(*list[i].failure, stopped());
  }
  EXPECT_EQ(waits().size(), 0u);
}

TEST_F(WaitTableTest, ForgottenWaitsAreNotWoken) {
  Wait wait;
  on_strand([&] {
    const WaitId id = waits().begin(wait);
    waits().forget_all();
    EXPECT_FALSE(waits().lasts(id));
    waits().end(id);
  });
  EXPECT_FALSE(woken(wait));
}

TEST_F(WaitTableTest, AWaitingExecutionIsTracedAndDescribed) {
  Wait wait;
  wait.execution = main_.get();
  wait.what = "an answer";
  on_strand([&] {
    const WaitId id = waits().begin(wait);
    ASSERT_EQ(waits().views().size(), 1u);
    EXPECT_EQ(waits().views()[0].label, "main");
    EXPECT_EQ(waits().views()[0].what, "an answer");
    EXPECT_EQ(waits().views()[0].path, main_->path());
    EXPECT_EQ(trace_.count(EventKind::execution_parked), 1u);
    EXPECT_EQ(trace_.count(EventKind::execution_resumed), 0u);
    waits().end(id);
  });
  EXPECT_EQ(trace_.count(EventKind::execution_resumed), 1u);
  EXPECT_TRUE(waits().views().empty());
}

TEST_F(WaitTableTest, AnExecutionGivesUpItsMonitorWhileParkedAndIsWokenInItsTurn) {
  // It parks inside a monitor, another enters, the wait ends: it resumes when that one has left.
  main_->monitor = std::make_shared<Monitor>();
  Monitor& monitor = *main_->monitor;
  Wait wait;
  wait.execution = main_.get();
  on_strand([&] {
    monitor.enter([] {});
    const WaitId id = waits().begin(wait);
    EXPECT_FALSE(monitor.held());
    bool other = false;
    monitor.enter([&] { other = true; });
    EXPECT_TRUE(other);
    waits().end(id);
    EXPECT_FALSE(woken(wait));
    EXPECT_TRUE(waits().lasts(id));
    monitor.leave();
    EXPECT_TRUE(woken(wait));
    EXPECT_TRUE(monitor.held());
    monitor.leave();
  });
}

TEST_F(WaitTableTest, TheEndOfTheNodeWaitsForNoMonitor) {
  // The wait has ended but stands in a monitor's queue; then all fail.
  main_->monitor = std::make_shared<Monitor>();
  const std::shared_ptr<Monitor> monitor = main_->monitor;
  Wait wait;
  wait.execution = main_.get();
  on_strand([&] {
    monitor->enter([] {});
    const WaitId id = waits().begin(wait);
    monitor->enter([] {});
    waits().end(id);
    waits().fail_all(stopped());
    EXPECT_TRUE(woken(wait));
    EXPECT_EQ(*wait.failure, stopped());
    EXPECT_EQ(main_->monitor, nullptr);
    monitor->leave();  // The turn of the wait that is no more.
    EXPECT_FALSE(monitor->held());
  });
}

}  // namespace
}  // namespace rehearsal
