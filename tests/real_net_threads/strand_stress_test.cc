#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/base/execution.h"
#include "real_net/runtime/real_runtime.h"
#include "tests/real_net_threads/run_threads.h"

// Real threads on plain-thread waiters, no fibers: this folder is what ThreadSanitizer looks at.
namespace rehearsal::real {
namespace {

constexpr int kThreads = 6;

// Posts `task` and waits until it has run.
void run_on_strand(RealRuntime& runtime, Task task) {
  Waiter waiter;
  runtime.post([&] {
    task();
    runtime.wake(waiter);
  });
  ASSERT_EQ(runtime.park(waiter), ParkOutcome::woken);
}

TEST(StrandStress, NoPostIsLostAndEachThreadsPostsRunInOrder) {
  // Goal: the strand runs everything once, one at a time. Method: plain counters that a race would
  // break.
  RealRuntime runtime({.worker_threads = 1});
  constexpr int kPosts = 5'000;
  std::vector<int> next(kThreads, 0);
  int total = 0;
  run_threads(kThreads, [&](int thread) {
    for (int i = 0; i < kPosts; ++i) {
      runtime.post([&, thread, i] {
        EXPECT_EQ(next[thread], i);
        next[thread] = i + 1;
        ++total;
      });
    }
  });
  run_on_strand(runtime, [&] { EXPECT_EQ(total, kThreads * kPosts); });
}

TEST(StrandStress, ClosuresDieOffTheStrandAndMayPost) {
  // Goal: a destructor that posts neither deadlocks nor runs within another task.
  RealRuntime runtime({.worker_threads = 1});
  bool on_strand = false;  // the strand's
  std::atomic<int> posted_by_destructors{0};
  struct PostsWhenItDies {
    ~PostsWhenItDies() {
      runtime.post([&on_strand = on_strand, &count = count] {
        EXPECT_FALSE(on_strand);
        ++count;
      });
    }
    RealRuntime& runtime;
    bool& on_strand;
    std::atomic<int>& count;
  };
  constexpr int kPosts = 2'000;
  run_threads(kThreads, [&](int) {
    for (int i = 0; i < kPosts; ++i) {
      auto dying = std::make_shared<PostsWhenItDies>(runtime, on_strand, posted_by_destructors);
      runtime.post([&on_strand, dying = std::move(dying)] {
        EXPECT_FALSE(on_strand);
        on_strand = true;
        on_strand = false;
      });
    }
  });
  run_on_strand(runtime, [] {});
  EXPECT_EQ(posted_by_destructors, kThreads * kPosts);
}

TEST(StrandStress, ALongChainOfDyingClosuresDoesNotGrowTheStack) {
  RealRuntime runtime({.worker_threads = 1});
  struct Link {
    ~Link() {
      if (left == 0) return;
      runtime.post([next = std::make_unique<Link>(runtime, left - 1)] {});
    }
    RealRuntime& runtime;
    int left;
  };
  runtime.post([first = std::make_unique<Link>(runtime, 200'000)] {});
  run_on_strand(runtime, [] {});
}

TEST(StrandStress, InlineBodiesRunOnceOffTheStrandAndMayNotPark) {
  RealRuntime runtime({.worker_threads = 1});
  constexpr int kBodies = 2'000;
  std::atomic<int> ran{0};
  int ended = 0;  // the strand's
  Waiter all_ended;
  std::vector<std::unique_ptr<Execution>> executions;  // the strand's
  run_threads(kThreads, [&](int thread) {
    for (int i = 0; i < kBodies; ++i) {
      runtime.post([&, thread, i] {
        const CausalId id{Incarnation{1}, {uint64_t(thread), 0}, uint64_t(i)};
        executions.push_back(std::make_unique<Execution>(id, "body", Seed{1}));
        Execution& execution = *executions.back();
        runtime.execute(execution, StackPlacement::inline_, [&] {
          EXPECT_EQ(runtime.running(), &execution);
          Waiter waiter;
          EXPECT_EQ(runtime.park(waiter), ParkOutcome::would_park);
          ++ran;
          runtime.post([&] {
            if (++ended == kThreads * kBodies) runtime.wake(all_ended);
          });
        });
      });
    }
  });
  EXPECT_EQ(runtime.park(all_ended), ParkOutcome::woken);
  EXPECT_EQ(ran, kThreads * kBodies);
}

}  // namespace
}  // namespace rehearsal::real
