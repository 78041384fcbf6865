// How the threads of two workers wait for each other: counts, not times.
#include <gtest/gtest.h>
#include <sched.h>

#include <optional>
#include <string>

#include "core/api/worker.h"
#include "real_net/runtime/processors.h"
#include "tests/real_net/support/loopback_group.h"

namespace rehearsal::real {
namespace {

constexpr int kCalls = 500;

// For its life, the calling thread and those that it starts run on so many processors at most.
class OnProcessors {
 public:
  explicit OnProcessors(int count) {
    CPU_ZERO(&before_);
    EXPECT_EQ(sched_getaffinity(0, sizeof before_, &before_), 0);
    cpu_set_t some;
    CPU_ZERO(&some);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&some) < count; ++cpu)
      if (CPU_ISSET(cpu, &before_)) CPU_SET(cpu, &some);
    EXPECT_EQ(sched_setaffinity(0, sizeof some, &some), 0);
  }
  ~OnProcessors() { EXPECT_EQ(sched_setaffinity(0, sizeof before_, &before_), 0); }
  OnProcessors(const OnProcessors&) = delete;
  OnProcessors& operator=(const OnProcessors&) = delete;

 private:
  cpu_set_t before_;
};

int64_t one_more(int64_t value) { return value + 1; }

using Counts = RealRuntime::PollingCounts;

// Of all workers together, for one call of the first worker to the second, while the others wait.
struct PerCall {
  double looks = 0;
  double yields = 0;
  double sleeps = 0;
};

PerCall per_call(uint32_t workers) {
  FunctionRegistry registry;
  registry.function("one_more", &one_more);
  Program program(registry);
  LoopbackGroup* group = nullptr;
  PerCall found;
  program.worker("caller", [&](Worker& worker) {
    for (uint32_t i = 1; i < workers; ++i)  // so that all links are up
      EXPECT_EQ(worker.rpc_sync("w" + std::to_string(i), &one_more, int64_t{0}), 1);
    std::vector<Counts> before;
    for (uint32_t i = 0; i < workers; ++i)
      before.push_back(group->node(i).runtime().polling_counts());
    for (int64_t i = 0; i < kCalls; ++i) EXPECT_EQ(worker.rpc_sync("w1", &one_more, i), i + 1);
    for (uint32_t i = 0; i < workers; ++i) {
      const Counts after = group->node(i).runtime().polling_counts();
      found.looks += static_cast<double>(after.looks - before[i].looks) / kCalls;
      found.yields += static_cast<double>(after.yields - before[i].yields) / kCalls;
      found.sleeps += static_cast<double>(after.sleeps - before[i].sleeps) / kCalls;
    }
  });
  for (uint32_t i = 1; i < workers; ++i) program.worker("w" + std::to_string(i), [](Worker&) {});
  LoopbackGroup made(program, {});
  group = &made;
  for (const Status& end : made.run()) EXPECT_TRUE(end.ok()) << to_string(end.error());
  return found;
}

TEST(PollingCounts, OnOneProcessorNobodyLooksAgain) {
  // Goal: a worker that waits takes no time from the one that it waits for. Method: both on one
  // processor: each look that finds nothing is followed by a sleep.
  const OnProcessors bound(1);
  const PerCall found = per_call(2);
  EXPECT_EQ(found.yields, 0);
  EXPECT_LE(found.looks, 16);
}

TEST(PollingCounts, WhereWorkersOutnumberProcessorsNobodyLooksAgain) {
  // Goal: the same for workers that are more than the processors. Method: four on two.
  const OnProcessors bound(2);
  const PerCall found = per_call(4);
  EXPECT_EQ(found.yields, 0);
  EXPECT_LE(found.looks, 24);
}

TEST(PollingCounts, EachSecondLookComesAfterAYield) {
  // Goal: between two looks the processor is free for others, wherever the kernel has placed them.
  // Method: two workers on two processors: looks are no more than the yields before them, one for
  // each turn and one for each sleep.
  const OnProcessors bound(2);
  if (usable_processors() < 2) GTEST_SKIP() << "one processor";
  const PerCall found = per_call(2);
  EXPECT_LE(found.looks, found.yields + 2 * found.sleeps + 16);
}

}  // namespace
}  // namespace rehearsal::real
