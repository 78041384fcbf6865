#include "sim/world/sim_runtime.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/fibers/stack_pool.h"
#include "sim/decisions/keyed_decisions.h"
#include "sim/world/turns.h"

namespace rehearsal::sim {
namespace {

class SimRuntimeTest : public testing::Test {
 protected:
  SimRuntimeTest() : runtime(prepared(), {WorkerId{3}, 1}) {}
  ~SimRuntimeTest() override { runtime.kill(); }

  World& prepared() {
    world.decisions = &decisions;
    world.stacks = &stacks;
    return world;
  }
  void run_all() {
    while (const auto next = world.queue.peek()) {
      world.queue.take(*next);
      EXPECT_EQ(next->what->worker(next->ticket), WorkerId{3});
      next->what->happen(next->ticket);
    }
  }
  void execute(Execution& execution, Task body) {
    runtime.post([this, &execution, body = std::move(body)]() mutable {
      runtime.execute(execution, StackPlacement::pool, std::move(body));
    });
  }

  fibers::StackPool stacks;
  KeyedDecisions decisions{Seed{1}, {}};
  World world;
  SimRuntime runtime;
  bool swallows = false;
  Execution one{{{1}, {1, 2}, 1}, "one", Seed{1}};
  Execution two{{{1}, {1, 2}, 2}, "two", Seed{1}};
};

TEST_F(SimRuntimeTest, APostOutsideATaskRunsBeforeItReturns) {
  bool ran = false;
  runtime.post([&ran] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST_F(SimRuntimeTest, ReadyWorkWaitsForTheTimeThatItsKeyDraws) {
  world.scheduling.start = net_fake::Delay::uniform({}, std::chrono::microseconds(10));
  Instant started;
  execute(one, [&] { started = runtime.now(); });
  run_all();
  const Key key{.kind = DecisionKind::start, .subject = {{3}, 1}, .place = one.path()};
  KeyedDecisions same(Seed{1}, {});
  const uint64_t draw = same.choose(key, net_fake::Delay::kDraws);
  EXPECT_EQ(started.time_since_epoch(), world.scheduling.start.sample(draw));
}

TEST_F(SimRuntimeTest, TimersAreLateByWhatIsDrawnButNeverEarly) {
  world.scheduling.timer =
      net_fake::Delay::uniform(std::chrono::microseconds(1), std::chrono::microseconds(10));
  std::vector<Duration> late;
  runtime.post([&] {
    for (int i = 1; i <= 20; ++i) {
      const Instant when{std::chrono::milliseconds(i)};
      runtime.call_at(when, [&late, this, when] { late.push_back(runtime.now() - when); });
    }
  });
  run_all();
  ASSERT_EQ(late.size(), 20u);
  for (const Duration by : late) {
    EXPECT_GE(by, std::chrono::microseconds(1));
    EXPECT_LE(by, std::chrono::microseconds(10));
  }
  EXPECT_NE(late[0], late[1]);
}

TEST_F(SimRuntimeTest, StacksAreUsedAgain) {
  for (int i = 0; i < 10; ++i) {
    execute(one, [] {});
    run_all();
  }
  EXPECT_EQ(stacks.live(), 0u);
  EXPECT_EQ(stacks.idle(), 1u);
  EXPECT_EQ(runtime.live_stacks(), 0u);
}

TEST_F(SimRuntimeTest, KillUnwindsInTheOrderInWhichStacksWereMade) {
  std::vector<std::string> order;
  const auto parks = [&](const char* name) {
    return [this, &order, name] {
      Waiter waiter;
      if (runtime.park(waiter) == ParkOutcome::killed) {
        order.emplace_back(name);
        throw NodeKilled{};
      }
    };
  };
  execute(one, parks("one"));
  execute(two, parks("two"));
  run_all();
  EXPECT_EQ(runtime.live_stacks(), 2u);
  EXPECT_EQ(runtime.describe_stacks(), "one\ntwo\n");
  runtime.kill();
  EXPECT_EQ(order, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(runtime.live_stacks(), 0u);
}

TEST_F(SimRuntimeTest, AStackThatWasWokenBeforeTheKillUnwindsToo) {
  Waiter* parked = nullptr;
  ParkOutcome outcome = ParkOutcome::woken;
  execute(one, [&] {
    Waiter waiter;
    parked = &waiter;
    outcome = runtime.park(waiter);
  });
  run_all();
  runtime.post([&] { runtime.wake(*parked); });
  runtime.kill();
  EXPECT_EQ(outcome, ParkOutcome::killed);
  EXPECT_FALSE(world.queue.peek());
}

TEST_F(SimRuntimeTest, ADetachedRuntimeStillRunsPostsAndDropsTheRest) {
  int ran = 0;
  runtime.detach();
  runtime.post([&] {
    ++ran;
    runtime.call_at(Instant{}, [&ran] { ++ran; });
    runtime.execute(one, StackPlacement::pool, [&ran] { ++ran; });
    runtime.execute(one, StackPlacement::inline_, [&ran] { ++ran; });
  });
  EXPECT_EQ(ran, 1);
  EXPECT_FALSE(world.queue.peek());
}

TEST_F(SimRuntimeTest, AStackThatAsksWithoutWaitingGivesWay) {
  // Goal: time passes, others go on, and what it asks for may come. Method: waits that are over
  // already, until another event has happened; then one that is not.
  bool come = false;
  uint64_t asked = 0;
  runtime.post(
      [&] { runtime.call_at(Instant{std::chrono::milliseconds(5)}, [&come] { come = true; }); });
  Instant seen;
  execute(one, [&] {
    while (!come) {
      ++asked;
      Waiter waiter;
      runtime.post([&] { runtime.wake(waiter); });
      EXPECT_EQ(runtime.park(waiter), ParkOutcome::woken);
    }
    seen = runtime.now();
    EXPECT_GT(runtime.busy().turns, 0u);
    EXPECT_EQ(runtime.busy().label, "one");
    Waiter waiter;
    runtime.post([&] {
      runtime.call_at(runtime.now() + std::chrono::milliseconds(1), [&] { runtime.wake(waiter); });
    });
    EXPECT_EQ(runtime.park(waiter), ParkOutcome::woken);
    EXPECT_EQ(runtime.busy().turns, 0u);
  });
  run_all();
  EXPECT_TRUE(come);
  EXPECT_GE(seen, Instant{std::chrono::milliseconds(5)});
  EXPECT_LE(asked, 7 * kPassesInTurn);
}

TEST_F(SimRuntimeTest, BodiesThatMakeBodiesGiveWayToo) {
  // Goal: the same of what runs inline. Method: each body starts the next one, until another event
  // has happened; all of them run, in order.
  bool come = false;
  uint64_t ran = 0;
  Task body;
  const auto start_next = [&] {
    runtime.post([&] {
      runtime.execute(one, StackPlacement::inline_, [&] {
        ++ran;
        if (!come) body();
      });
    });
  };
  body = start_next;
  runtime.post(
      [&] { runtime.call_at(Instant{std::chrono::milliseconds(5)}, [&come] { come = true; }); });
  start_next();
  EXPECT_EQ(ran, kPassesInTurn);
  run_all();
  EXPECT_TRUE(come);
  EXPECT_GT(ran, kPassesInTurn);
  EXPECT_LE(ran, 7 * kPassesInTurn);
  EXPECT_EQ(runtime.busy().turns, 0u);
}

TEST(Turns, GetLongerOnceCodeIsNotJustBusy) {
  for (uint64_t turn = 1; turn <= 128; ++turn)
    EXPECT_EQ(length_of_turn(turn), std::chrono::milliseconds(1));
  EXPECT_EQ(length_of_turn(129), std::chrono::milliseconds(2));
  EXPECT_EQ(length_of_turn(132), std::chrono::milliseconds(16));
  EXPECT_EQ(length_of_turn(138), std::chrono::milliseconds(1024));
  EXPECT_EQ(length_of_turn(1000), std::chrono::milliseconds(1024));
}

using SimRuntimeDeathTest = SimRuntimeTest;

// Goal: code that swallows NodeKilled for ever is named instead of hanging the run.
TEST_F(SimRuntimeDeathTest, CodeThatSwallowsNodeKilledEndsTheRun) {
  swallows = true;
  execute(one, [this] {
    do {
      Waiter waiter;
      (void)runtime.park(waiter);
    } while (swallows);
  });
  run_all();
  EXPECT_DEATH(runtime.kill(), "one goes on although its node was killed");
  swallows = false;
}

}  // namespace
}  // namespace rehearsal::sim
