#include "real_net/runtime/real_runtime.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <fstream>
#include <new>
#include <set>

#include "tests/real_net/support/no_threads.h"
#include "tests/real_net/support/tcp_world.h"

namespace rehearsal::real {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Starts executions with their own Execution objects.
class Starter {
 public:
  explicit Starter(RealRuntime& runtime) : runtime_(runtime) {}
  // A body's last report comes before its end.
  ~Starter() { EXPECT_TRUE(runtime_.wait_for_executions(std::chrono::seconds(60))); }

  void start(Task body, std::string_view label = "body") {
    const CausalId id{{1}, {7, 7}, executions_.size()};
    executions_.push_back(std::make_unique<Execution>(id, label, Seed{1}));
    runtime_.post([this, execution = executions_.back().get(), body = std::move(body)]() mutable {
      runtime_.execute(*execution, StackPlacement::pool, std::move(body));
    });
  }

 private:
  RealRuntime& runtime_;
  std::vector<std::unique_ptr<Execution>> executions_;
};

// Parks until the timer of `delay` wakes it.
ParkOutcome pause(RealRuntime& runtime, Duration delay) {
  Waiter waiter;
  runtime.post([&] { runtime.call_at(runtime.now() + delay, [&] { runtime.wake(waiter); }); });
  return runtime.park(waiter);
}

// Rows: rpc_test::TensorPipeAgentRpcTest.test_set_and_get_num_worker_threads
TEST(RealRuntime, ExecutionsTakeFreeThreadsThenNewOnesThenTheLeastLoaded) {
  // Goal: placement. Method: bodies that park note on which thread they run.
  RealRuntime runtime({.worker_threads = 3});
  Starter starter(runtime);
  std::mutex mutex;
  std::vector<std::thread::id> threads;
  std::vector<Waiter*> parked;  // the strand's
  const auto body = [&] {
    Waiter waiter;
    {
      const std::lock_guard lock(mutex);
      threads.push_back(std::this_thread::get_id());
    }
    runtime.post([&] { parked.push_back(&waiter); });
    EXPECT_EQ(runtime.park(waiter), ParkOutcome::woken);
  };
  for (size_t i = 1; i <= 6; ++i) {
    starter.start(body);
    ASSERT_TRUE(wait_until(runtime, [&] {
      const std::lock_guard lock(mutex);
      return threads.size() == i;
    }));
  }
  EXPECT_EQ(std::set(threads.begin(), threads.begin() + 3).size(), 3u);
  EXPECT_EQ(std::set(threads.begin() + 3, threads.end()).size(), 3u);
  run_on(runtime, [&] {
    for (Waiter* waiter : parked) runtime.wake(*waiter);
  });
  EXPECT_TRUE(runtime.wait_for_executions(seconds(60)));
}

TEST(RealRuntime, AnExecutionStaysOnItsThreadThroughParks) {
  RealRuntime runtime({.worker_threads = 2});
  Starter starter(runtime);
  std::atomic<int> ended{0};
  for (int i = 0; i < 20; ++i)
    starter.start([&] {
      const std::thread::id home = std::this_thread::get_id();
      for (int round = 0; round < 20; ++round) {
        EXPECT_EQ(pause(runtime, std::chrono::microseconds(50)), ParkOutcome::woken);
        EXPECT_EQ(std::this_thread::get_id(), home);
      }
      ++ended;
    });
  EXPECT_TRUE(wait_until(runtime, [&] { return ended == 20; }));
}

TEST(RealRuntime, WithoutWorkerThreadsExecutionsRunOnTheMainThreadWhileItWaits) {
  RealRuntime runtime({.worker_threads = 0});
  Starter starter(runtime);
  Execution main({}, "main", Seed{1});
  std::atomic<int> ran{0};
  starter.start([&] { ++ran; });  // before there is a main thread
  const auto guard = runtime.register_main(main);
  const std::thread::id here = std::this_thread::get_id();
  starter.start([&] {
    EXPECT_EQ(std::this_thread::get_id(), here);
    EXPECT_EQ(pause(runtime, milliseconds(2)), ParkOutcome::woken);
    EXPECT_EQ(std::this_thread::get_id(), here);
    ++ran;
  });
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(runtime.running(), &main);
  EXPECT_EQ(pause(runtime, milliseconds(20)), ParkOutcome::woken);
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(runtime.running(), &main);
}

TEST(RealRuntime, WhereNoThreadCanBeStartedExecutionsRunOnTheMainThreadWhileItWaits) {
  // Method: one before there is a main thread, one after; then threads can be started again.
  RealRuntime runtime({.worker_threads = 2});
  Starter starter(runtime);
  Execution main({}, "main", Seed{1});
  const std::thread::id here = std::this_thread::get_id();
  std::atomic<int> ran{0};
  const auto body = [&] {
    EXPECT_EQ(std::this_thread::get_id(), here);
    EXPECT_EQ(pause(runtime, milliseconds(2)), ParkOutcome::woken);
    ++ran;
  };
  std::optional<NoThreads> none(std::in_place);
  starter.start(body);
  const auto guard = runtime.register_main(main);
  starter.start(body);
  EXPECT_TRUE(wait_until(runtime, [&] { return ran == 2; }));
  none.reset();
  std::atomic<bool> elsewhere{false};
  starter.start([&] { elsewhere = std::this_thread::get_id() != here; });
  EXPECT_TRUE(wait_until(runtime, [&] { return elsewhere.load(); }));
}

TEST(RealRuntimeDeathTest, AStrandThatFindsNoMemorySaysSoAndEndsTheProcess) {
  const auto find_none = [] {
    RealRuntime runtime({.worker_threads = 1, .worker = "ps"});
    runtime.post([] { throw std::bad_alloc(); });
  };
  EXPECT_EXIT(find_none(), ::testing::ExitedWithCode(1),
              "rehearsal: worker 'ps' has no memory left, and ends: raise its limit");
}

// Leaves with 0 if executions that wait for a stack end when they are killed.
[[noreturn]] void kill_without_stacks() {
  RealRuntime runtime({.worker_threads = 1});
  std::vector<std::unique_ptr<Execution>> executions;
  for (size_t i = 0; i < 200; ++i)
    executions.push_back(std::make_unique<Execution>(CausalId{{1}, {7, 7}, i}, "parks", Seed{1}));
  // The first one has the runtime's thread started, and its first stack made.
  std::atomic<int> parked{0};
  const auto start = [&](Execution& execution) {
    run_on(runtime, [&] {
      runtime.execute(execution, StackPlacement::pool, [&] {
        Waiter waiter;
        ++parked;
        if (runtime.park(waiter) == ParkOutcome::killed) throw NodeKilled{};
      });
    });
  };
  start(*executions.front());
  if (!wait_until(runtime, [&] { return parked == 1; })) std::_Exit(2);
  // All that is not for stacks has its memory already.
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  {
    std::vector<std::unique_ptr<char[]>> kept;
    for (int i = 0; i < 80; ++i) kept.push_back(std::make_unique<char[]>(100'000));
  }
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * 4096 + (64u << 20);
  const rlimit limit{bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(3);
  for (size_t i = 1; i < executions.size(); ++i) start(*executions[i]);
  if (pause(runtime, milliseconds(300)) != ParkOutcome::woken) std::_Exit(4);
  if (parked == static_cast<int>(executions.size())) std::_Exit(5);
  runtime.kill();
  std::_Exit(runtime.wait_for_executions(seconds(60)) ? 0 : 6);
}

TEST(RealRuntimeDeathTest, ExecutionsThatWaitForAStackEndWhenTheyAreKilled) {
  // Method: a child process with 64 MiB of address space left starts 200 with 1 MiB each.
#if defined(REHEARSAL_ADDRESS_SANITIZER)
  GTEST_SKIP() << "AddressSanitizer needs the address space for itself";
#endif
  EXPECT_EXIT(kill_without_stacks(), ::testing::ExitedWithCode(0), "'parks' waits for a stack");
}

TEST(RealRuntime, ProtocolWorkGoesOnWhileTheMainThreadComputes) {
  // Goal: without worker threads the strand is still served. Method: timers while nobody waits.
  RealRuntime runtime({.worker_threads = 0});
  Execution main({}, "main", Seed{1});
  const auto guard = runtime.register_main(main);
  std::atomic<int> ticks{0};
  std::function<void()> tick = [&] {
    if (++ticks < 20) runtime.call_at(runtime.now() + milliseconds(1), [&] { tick(); });
  };
  runtime.post([&] { runtime.call_at(runtime.now(), [&] { tick(); }); });
  const Instant limit = runtime.now() + seconds(60);
  while (ticks < 20 && runtime.now() < limit) std::this_thread::yield();
  EXPECT_EQ(ticks, 20);
}

TEST(RealRuntime, WhoPollsWaitsForAHolderThatStandsStillAndQueuesNothingMeanwhile) {
  // Goal: timers that are due while another thread has the strand are left to it. Method: a holder
  // that sleeps; whoever polls then asks the network again and again, with pauses, and no more.
  RealRuntime runtime({.worker_threads = 1});
  std::atomic<bool> ran{false};
  run_on(runtime, [&] {
    runtime.call_at(runtime.now(), [&] { ran = true; });
    const uint64_t before = runtime.poller().wait_count();
    const Instant limit = runtime.now() + seconds(60);
    while (runtime.poller().wait_count() < before + 5 && runtime.now() < limit)
      std::this_thread::sleep_for(milliseconds(1));
    EXPECT_GE(runtime.poller().wait_count(), before + 5);
    EXPECT_FALSE(ran);
  });
  EXPECT_TRUE(wait_until(runtime, [&] { return ran.load(); }));
}

TEST(RealRuntime, AThousandNestedExecutionsNeedOneThread) {
  RealRuntime runtime({.worker_threads = 1});
  Starter starter(runtime);
  std::atomic<int> deepest{0};
  std::function<void(int)> nest = [&](int depth) {
    deepest = depth;
    if (depth == 1000) return;
    Waiter waiter;
    starter.start([&, depth] {
      nest(depth + 1);
      runtime.post([&] { runtime.wake(waiter); });
    });
    EXPECT_EQ(runtime.park(waiter), ParkOutcome::woken);
  };
  starter.start([&] { nest(1); });
  EXPECT_TRUE(wait_until(runtime, [&] { return runtime.live_executions() == 0 && deepest > 0; }));
  EXPECT_EQ(deepest, 1000);
}

TEST(RealRuntime, KillUnwindsParkedExecutionsAndStartsNoMore) {
  for (const uint32_t worker_threads : {1u, 3u}) {
    RealRuntime runtime({.worker_threads = worker_threads});
    Starter starter(runtime);
    std::atomic<int> parked{0};
    std::atomic<int> unwound{0};
    std::atomic<int> ran{0};
    for (int i = 0; i < 10; ++i)
      starter.start([&] {
        const conformance::RecordingSink on_stack;  // something to destroy
        Waiter waiter;
        ++parked;
        if (runtime.park(waiter) == ParkOutcome::killed) {
          ++unwound;
          throw NodeKilled{};
        }
      });
    ASSERT_TRUE(wait_until(runtime, [&] { return parked == 10; }));
    run_on(runtime, [&] { runtime.call_at(runtime.now() + milliseconds(5), [&] { ++ran; }); });
    runtime.kill();
    starter.start([&] { ++ran; });
    EXPECT_TRUE(runtime.wait_for_executions(seconds(60)));
    EXPECT_EQ(unwound, 10);
    EXPECT_EQ(ran, 0);
  }
}

TEST(RealRuntime, WhatItsThreadsHadNoTimeForRunsWhenItStops) {
  // Goal: what runs inline never stays behind, where it would keep alive what it owns. Method: the
  // strand starts such bodies at the moment at which the thread that it runs on is woken, and the
  // runtime stops at once; often.
  for (int round = 0; round < 300; ++round) {
    int ran = 0;
    Execution execution({{1}, {7, 7}, 0}, "inline", Seed{1});
    {
      RealRuntime runtime({.worker_threads = 1});
      Waiter waiter;
      runtime.post([&] {
        runtime.call_at(runtime.now() + std::chrono::microseconds(20), [&] {
          for (int i = 0; i < 3; ++i)
            runtime.execute(execution, StackPlacement::inline_, [&] { ++ran; });
          runtime.wake(waiter);
        });
      });
      ASSERT_EQ(runtime.park(waiter), ParkOutcome::woken);
      runtime.stop();
    }
    ASSERT_EQ(ran, 3) << "in round " << round;
  }
}

TEST(RealRuntime, ExecutionsThatDoNotEndAreNamed) {
  RealRuntime runtime({.worker_threads = 1});
  Starter starter(runtime);
  std::atomic<bool> enough{false};
  starter.start(
      [&] {
        while (!enough) std::this_thread::yield();
      },
      "spins");
  EXPECT_FALSE(runtime.wait_for_executions(milliseconds(5)));
  EXPECT_EQ(runtime.live_labels(), std::vector<std::string>{"spins"});
  enough = true;
  EXPECT_TRUE(runtime.wait_for_executions(seconds(60)));
}

TEST(RealRuntime, EveryThreadOfItComputesWithOneLibTorchThread) {
  RealRuntime runtime({.worker_threads = 1});
  Starter starter(runtime);
  std::atomic<int> threads{0};
  starter.start([&] { threads = at::get_num_threads(); });
  ASSERT_TRUE(wait_until(runtime, [&] { return threads != 0; }));
  EXPECT_EQ(threads, 1);
}

}  // namespace
}  // namespace rehearsal::real
