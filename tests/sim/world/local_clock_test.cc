#include "sim/world/local_clock.h"

#include <gtest/gtest.h>

#include "core/base/hash.h"
#include "core/fibers/stack_pool.h"
#include "sim/decisions/keyed_decisions.h"
#include "sim/world/sim_runtime.h"

namespace rehearsal::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

LocalClock clock_of(Duration offset, int64_t drift_millionths) {
  LocalClock clock;
  clock.offset = offset;
  clock.drift_millionths = drift_millionths;
  return clock;
}

TEST(LocalClock, ShowsOffsetDriftAndJumps) {
  LocalClock clock = clock_of(seconds(100), 500);
  EXPECT_EQ(clock.local(Instant{}), Instant{seconds(100)});
  EXPECT_EQ(clock.local(Instant{seconds(10)}), Instant{seconds(110) + milliseconds(5)});
  clock.jump(seconds(7));
  EXPECT_EQ(clock.local(Instant{seconds(10)}), Instant{seconds(117) + milliseconds(5)});
  EXPECT_EQ(clock_of({}, -500).local(Instant{seconds(10)}), Instant{seconds(10) - milliseconds(5)});
}

// Goal: a timer is never early, and late by no nanosecond. Method: the instant before it.
TEST(LocalClock, TheInstantOfATimerIsTheFirstAtWhichTheClockShowsIt) {
  for (const int64_t drift : {-500, -1, 0, 1, 37, 500}) {
    const LocalClock clock = clock_of(milliseconds(12'345), drift);
    for (uint64_t i = 1; i <= 200; ++i) {
      const Instant shown{milliseconds(12'345) + nanoseconds(mix(i) >> 20)};
      const Instant when = clock.virtual_time(shown);
      EXPECT_GE(clock.local(when), shown);
      EXPECT_LT(clock.local(when - nanoseconds(1)), shown) << drift;
    }
  }
  EXPECT_EQ(clock_of(seconds(9), 0).virtual_time(Instant{seconds(3)}), Instant{});
  EXPECT_EQ(clock_of(seconds(9), 5).virtual_time(Instant::max()), Instant::max());
}

class ClockedRuntimeTest : public testing::Test {
 protected:
  ClockedRuntimeTest() : runtime(prepared(), {WorkerId{0}, 0}) {}
  ~ClockedRuntimeTest() override { runtime.kill(); }
  World& prepared() {
    world.decisions = &decisions;
    world.stacks = &stacks;
    world.clocks = {clock_of(seconds(1000), 100)};
    return world;
  }
  void advance(Duration time) {
    const Instant end = world.queue.now() + time;
    for (auto next = world.queue.peek(); next && next->when <= end; next = world.queue.peek()) {
      world.queue.take(*next);
      next->what->happen(next->ticket);
    }
    world.queue.move_to(end);
  }
  void in(Duration time, std::vector<Duration>& fired) {
    runtime.post([this, time, &fired] {
      runtime.call_at(runtime.now() + time,
                      [this, &fired] { fired.push_back(world.queue.now().time_since_epoch()); });
    });
  }
  fibers::StackPool stacks;
  KeyedDecisions decisions{Seed{1}, {}};
  World world;
  SimRuntime runtime;
};

TEST_F(ClockedRuntimeTest, TimersAreArmedOnTheLocalClock) {
  EXPECT_EQ(runtime.now(), Instant{seconds(1000)});
  std::vector<Duration> fired;
  in(seconds(10'001), fired);  // The clock is faster by a ten-thousandth.
  advance(seconds(20'000));
  EXPECT_EQ(fired, std::vector<Duration>{seconds(10'000)});
}

TEST_F(ClockedRuntimeTest, AfterAJumpTimersAreDueEarlierAndOnce) {
  std::vector<Duration> fired;
  world.clocks[0].drift_millionths = 0;
  in(seconds(4), fired);
  in(seconds(60), fired);
  world.clocks[0].jump(seconds(10));
  runtime.clock_jumped();
  advance(seconds(100));
  EXPECT_EQ(fired, (std::vector<Duration>{Duration{}, seconds(50)}));
}

}  // namespace
}  // namespace rehearsal::sim
