#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "real_net/runtime/spin_budget.h"
#include "real_net/runtime/thread_signal.h"
#include "real_net/runtime/timer_table.h"
#include "real_net/tcp/back_off.h"

namespace rehearsal::real {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

Instant at(int64_t count) { return Instant(milliseconds(count)); }

TEST(TimerTable, RunsInOrderAndTiesInTheOrderOfTheirMaking) {
  TimerTable table;
  std::vector<int> order;
  (void)table.add(at(20), [&] { order.push_back(3); });
  (void)table.add(at(10), [&] { order.push_back(1); });
  (void)table.add(at(10), [&] { order.push_back(2); });
  EXPECT_EQ(table.earliest(), at(10));
  EXPECT_FALSE(table.take_due(at(9)));
  while (Task task = table.take_due(at(20))) task();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(table.earliest(), Instant::max());
}

TEST(TimerTable, ACancelledTimerIsGoneAndTheNextIsEarliest) {
  TimerTable table;
  const TimerId first = table.add(at(1), [] {});
  (void)table.add(at(2), [] {});
  EXPECT_TRUE(table.cancel(first));
  EXPECT_FALSE(table.cancel(first));
  EXPECT_EQ(table.earliest(), at(2));
  EXPECT_EQ(table.clear().size(), 1u);
  EXPECT_EQ(table.size(), 0u);
}

TEST(BackOff, DoublesUpToALimitAndIsSpreadOverTheUpperHalf) {
  const BackOffOptions options{.min = milliseconds(10), .max = milliseconds(100)};
  for (uint64_t key = 0; key < 50; ++key) {
    for (uint64_t failures = 0; failures < 70; ++failures) {
      const int doublings = 1 << std::min<uint64_t>(failures, 6);
      const Duration limit = std::min<Duration>(options.max, milliseconds(10) * doublings);
      const Duration wait = back_off(options, failures, key);
      EXPECT_LE(wait, limit);
      EXPECT_GE(wait, limit / 2);
      EXPECT_EQ(wait, back_off(options, failures, key));
    }
  }
  EXPECT_NE(back_off(options, 3, 1), back_off(options, 3, 2));
}

// The turns of `budget` that are given time, of so many of which each finds something or none does.
int tries(SpinBudget& budget, int turns, bool found) {
  int tried = 0;
  for (int i = 0; i < turns; ++i) {
    if (budget.next() == Duration::zero()) continue;
    ++tried;
    budget.note(found);
  }
  return tried;
}

TEST(SpinBudget, LooksWhereThatOftenFindsSomethingAndElseEverMoreRarely) {
  // Goal: looking is judged by what it finds. Method: turns that find, that never do, one in four.
  SpinBudget budget(microseconds(60));
  EXPECT_EQ(tries(budget, 100, /*found=*/true), 100);
  EXPECT_LE(tries(budget, 1'000, /*found=*/false), 20);
  EXPECT_LE(tries(budget, 10'000, /*found=*/false), 12);
  EXPECT_GE(tries(budget, 2'000, /*found=*/true), 900) << "it never tries again";
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(tries(budget, 3, /*found=*/false), 3) << i;
    EXPECT_EQ(tries(budget, 1, /*found=*/true), 1) << i;
  }
}

TEST(SpinBudget, OfNoTimeNeverLooks) {
  SpinBudget never{Duration::zero()};
  EXPECT_EQ(tries(never, 100, /*found=*/true), 0);
}

TEST(ThreadSignal, ASetBeforeTheWaitIsKeptAndSeveralCountAsOne) {
  ThreadSignal signal;
  signal.set();
  signal.set();
  signal.wait();
  EXPECT_FALSE(signal.wait_for(microseconds(10)));
}

TEST(ThreadSignal, TwoThreadsHandATurnBackAndForth) {
  ThreadSignal ping;
  ThreadSignal pong;
  constexpr int kRounds = 5'000;
  std::thread other([&] {
    for (int i = 0; i < kRounds; ++i) {
      ping.wait();
      pong.set();
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    ping.set();
    if (i % 3 == 0) {
      while (!pong.wait_for(microseconds(5))) {
      }
    } else {
      pong.wait();
    }
  }
  other.join();
}

}  // namespace
}  // namespace rehearsal::real
