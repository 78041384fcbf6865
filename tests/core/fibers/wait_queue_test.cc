#include "core/fibers/wait_queue.h"

#include <gtest/gtest.h>

#include <boost/fiber/all.hpp>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/core/fibers/fiber_fixture.h"

// Boost.Fiber for code that runs in no execution. The waits of executions are tested where there
// are nodes: tests/sim/world/primitives_test.cc.
namespace rehearsal::fibers {
namespace {

namespace bf = boost::fibers;

class WaitQueueTest : public FiberFixture {};

TEST_F(WaitQueueTest, BoostComesToOurs) { EXPECT_TRUE(wait_queue_is_ours()); }

TEST_F(WaitQueueTest, AMutexTellsFibersApart) {
  bf::mutex mutex;
  auto holder = make([&mutex](Fiber& self) {
    const std::lock_guard lock(mutex);
    self.suspend();
  });
  auto other = make([&mutex](Fiber&) { EXPECT_FALSE(mutex.try_lock()); });
  holder->resume();
  other->resume();
  EXPECT_FALSE(mutex.try_lock());
  holder->resume();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TEST_F(WaitQueueTest, FibersOfAProgramsOwnRunAsInBoost) {
  bf::buffered_channel<int> numbers(2);
  bf::unbuffered_channel<int> doubled;
  bf::mutex mutex;
  bf::condition_variable all;
  int sum = 0;
  std::vector<bf::fiber> fibers;
  fibers.emplace_back([&] {
    for (int i = 1; i <= 10; ++i) numbers.push(i);
    numbers.close();
  });
  fibers.emplace_back([&] {
    for (const int number : numbers) doubled.push(2 * number);
    doubled.close();
  });
  fibers.emplace_back([&] {
    for (const int number : doubled) {
      boost::this_fiber::yield();
      const std::lock_guard lock(mutex);
      sum += number;
      all.notify_all();
    }
  });
  {
    std::unique_lock lock(mutex);
    all.wait(lock, [&] { return sum == 110; });
    EXPECT_FALSE(all.wait_for(lock, std::chrono::milliseconds(1), [] { return false; }));
  }
  boost::this_fiber::sleep_for(std::chrono::milliseconds(1));
  bf::fiber_specific_ptr<int> specific;
  specific.reset(new int(1));
  EXPECT_EQ(*specific, 1);
  for (bf::fiber& fiber : fibers) fiber.join();
}

TEST_F(WaitQueueTest, AThreadWaitsForAnother) {
  bf::promise<int> promise;
  std::thread setter([&promise] { promise.set_value(7); });
  auto fiber = make([](Fiber& self) { self.suspend(); });
  fiber->resume();
  EXPECT_EQ(promise.get_future().get(), 7);
  setter.join();
  fiber->resume();
}

using WaitQueueDeathTest = WaitQueueTest;

TEST_F(WaitQueueDeathTest, AFiberOfNoWorkerMayNotWait) {
  bf::mutex mutex;
  mutex.lock();
  auto fiber = make([&mutex](Fiber&) { mutex.lock(); });
  EXPECT_DEATH(fiber->resume(), "no execution of a worker runs here");
  fiber->discard();
  mutex.unlock();
}

// A stack that came back belongs to no thread, and no thread waits for it at its end.
TEST(WaitQueue, StacksGoFromThreadToThread) {
  StackPool pool;
  for (int i = 0; i < 4; ++i)
    std::thread([&pool] {
      int steps = 0;
      Fiber* self = nullptr;
      Fiber fiber("test", std::move(pool.take()).value(), [&] {
        ++steps;
        self->suspend();
        ++steps;
      });
      self = &fiber;
      fiber.resume();
      fiber.resume();
      EXPECT_TRUE(fiber.done());
      EXPECT_EQ(steps, 2);
    }).join();
  EXPECT_EQ(pool.idle(), 1u);
}

}  // namespace
}  // namespace rehearsal::fibers
