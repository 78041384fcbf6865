#include "core/fibers/fiber.h"

#include <gtest/gtest.h>

#include <array>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/fibers/sanitizer.h"
#include "tests/core/fibers/fiber_fixture.h"

namespace rehearsal::fibers {
namespace {

class FiberTest : public FiberFixture {};

TEST_F(FiberTest, RunsAtTheFirstResumeAndReturnsAtEachSuspend) {
  // Note each step of a fiber that suspends twice, and of its owner.
  std::vector<std::string> steps;
  auto fiber = make([&](Fiber& self) {
    steps.push_back("one");
    self.suspend();
    steps.push_back("two");
    self.suspend();
    steps.push_back("three");
  });
  EXPECT_TRUE(steps.empty());
  EXPECT_FALSE(fiber->started());
  for (const char* owner : {"a", "b", "c"}) {
    EXPECT_FALSE(fiber->done());
    fiber->resume();
    steps.push_back(owner);
  }
  EXPECT_TRUE(fiber->done());
  EXPECT_EQ(steps, (std::vector<std::string>{"one", "a", "two", "b", "three", "c"}));
}

TEST_F(FiberTest, KnowsWhetherItRuns) {
  // Look at the phase from inside and from outside.
  auto fiber = make([&](Fiber& self) {
    EXPECT_TRUE(self.running());
    self.suspend();
    EXPECT_TRUE(self.running());
  });
  EXPECT_FALSE(fiber->running());
  fiber->resume();
  EXPECT_FALSE(fiber->running());
  EXPECT_TRUE(fiber->started());
  EXPECT_FALSE(fiber->done());
  fiber->resume();
  EXPECT_FALSE(fiber->running());
  EXPECT_TRUE(fiber->done());
}

TEST_F(FiberTest, KeepsItsLabel) {
  // Labels are shown to people, so they must survive.
  auto fiber = make([](Fiber&) {}, "trainer0: main");
  EXPECT_EQ(fiber->label(), "trainer0: main");
  fiber->resume();
  EXPECT_EQ(fiber->label(), "trainer0: main");
}

TEST_F(FiberTest, LocalsSurviveManySwitches) {
  // Two fibers that fill an array each, taking turns after every element.
  const auto fill = [](std::vector<int>& result, int factor) {
    return [&result, factor](Fiber& self) {
      std::array<int, 1000> local{};
      for (int i = 0; i < 1000; ++i) {
        local[i] = i * factor;
        self.suspend();
      }
      result.assign(local.begin(), local.end());
    };
  };
  std::vector<int> twos;
  std::vector<int> threes;
  auto first = make(fill(twos, 2));
  auto second = make(fill(threes, 3));
  while (!second->done()) {
    first->resume();
    second->resume();
  }
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(twos[i], 2 * i);
    EXPECT_EQ(threes[i], 3 * i);
  }
}

TEST_F(FiberTest, AFiberMayResumeAnother) {
  // The inner one suspends to the outer one, not to the owner of the outer one.
  std::string steps;
  auto inner = make([&](Fiber& self) {
    steps += "i1 ";
    self.suspend();
    steps += "i2 ";
  });
  auto outer = make([&](Fiber& self) {
    inner->resume();
    steps += "o1 ";
    self.suspend();
    inner->resume();
    steps += "o2 ";
  });
  outer->resume();
  steps += "owner ";
  outer->resume();
  EXPECT_EQ(steps, "i1 o1 owner i2 o2 ");
  EXPECT_TRUE(inner->done());
}

TEST_F(FiberTest, AFiberThatSuspendedInOneMayBeResumedFromAnotherStack) {
  // First resume from within a fiber, second from the thread's own stack.
  int steps = 0;
  auto inner = make([&](Fiber& self) {
    ++steps;
    self.suspend();
    ++steps;
  });
  auto outer = make([&](Fiber&) { inner->resume(); });
  outer->resume();
  EXPECT_TRUE(outer->done());
  EXPECT_EQ(steps, 1);
  inner->resume();
  EXPECT_EQ(steps, 2);
  EXPECT_TRUE(inner->done());
}

TEST_F(FiberTest, ClosureAndStackAreGivenBackWhenTheBodyEnds) {
  // The Fiber object lives on, but what it held is free.
  auto value = std::make_shared<int>(7);
  auto fiber = make([value](Fiber& self) { self.suspend(); });
  EXPECT_EQ(value.use_count(), 2);
  EXPECT_EQ(pool_.live(), 1u);
  fiber->resume();
  EXPECT_EQ(value.use_count(), 2);
  fiber->resume();
  EXPECT_EQ(value.use_count(), 1);
  EXPECT_EQ(pool_.live(), 0u);
  EXPECT_EQ(pool_.idle(), 1u);
}

TEST_F(FiberTest, DiscardDestroysTheBodyUnrun) {
  // A fiber that never started has nothing to unwind.
  auto value = std::make_shared<int>(7);
  bool ran = false;
  auto fiber = make([value, &ran](Fiber&) { ran = true; });
  fiber->discard();
  EXPECT_TRUE(fiber->done());
  EXPECT_FALSE(ran);
  EXPECT_EQ(value.use_count(), 1);
  EXPECT_EQ(pool_.live(), 0u);
}

TEST_F(FiberTest, StacksOfEndedFibersServeTheNextOnes) {
  // A hundred thousand fibers, one after the other, need one stack.
  int ran = 0;
  for (int i = 0; i < 100'000; ++i) make([&](Fiber&) { ++ran; })->resume();
  EXPECT_EQ(ran, 100'000);
  EXPECT_EQ(pool_.live(), 0u);
  EXPECT_EQ(pool_.idle(), 1u);
}

TEST_F(FiberTest, ThousandsAreParkedAtOnceAndAllEnd) {
  // Ten thousand live fibers, resumed three times each in two orders.
  constexpr int kCount = 10'000;
  std::vector<std::unique_ptr<Fiber>> fibers;
  int64_t sum = 0;
  for (int i = 0; i < kCount; ++i)
    fibers.push_back(make([&sum, i](Fiber& self) {
      const int mine = i;
      self.suspend();
      self.suspend();
      sum += mine;
    }));
  for (auto& fiber : fibers) fiber->resume();
  EXPECT_EQ(pool_.live(), static_cast<size_t>(kCount));
  for (auto fiber = fibers.rbegin(); fiber != fibers.rend(); ++fiber) (*fiber)->resume();
  EXPECT_EQ(sum, 0);
  for (auto& fiber : fibers) fiber->resume();
  EXPECT_EQ(sum, int64_t{kCount} * (kCount - 1) / 2);
  EXPECT_EQ(pool_.live(), 0u);
}

TEST_F(FiberTest, UserCodeHasAMebibyteOfStack) {
  // Recursion over 900 KiB, with a suspend at the deepest point.
  std::function<int(Fiber&, int)> descend = [&](Fiber& self, int depth) {
    std::array<volatile char, 4096> frame;
    for (size_t i = 0; i < frame.size(); i += 512) frame[i] = static_cast<char>(depth);
    if (depth == 0) {
      self.suspend();
      return 0;
    }
    const int below = descend(self, depth - 1);
    return below + (frame[512] == static_cast<char>(depth) ? 1 : 0);
  };
#if defined(REHEARSAL_ADDRESS_SANITIZER)
  constexpr int kDepth = 100;
#else
  constexpr int kDepth = 210;
#endif
  int intact = 0;
  auto fiber = make([&](Fiber& self) { intact = descend(self, kDepth); });
  fiber->resume();
  fiber->resume();
  EXPECT_EQ(intact, kDepth);
}

using FiberDeathTest = FiberTest;

TEST_F(FiberDeathTest, DestroyingASuspendedFiberIsABug) {
  // Its stack may hold objects that nobody would destroy.
  EXPECT_DEATH(
      {
        auto fiber = make([](Fiber& self) { self.suspend(); }, "forgotten");
        fiber->resume();
        fiber.reset();
      },
      "forgotten");
}

TEST_F(FiberDeathTest, DestroyingAFreshFiberIsABug) {
  // A caller that means it says discard.
  EXPECT_DEATH(make([](Fiber&) {}, "never started").reset(), "never started");
}

TEST_F(FiberDeathTest, ResumingAnEndedFiberIsABug) {
  // There is nothing left to run.
  auto fiber = make([](Fiber&) {});
  fiber->resume();
  EXPECT_DEATH(fiber->resume(), "check failed");
}

TEST_F(FiberDeathTest, ResumingItselfIsABug) {
  // A fiber cannot wait for itself.
  auto fiber = make([](Fiber& self) { EXPECT_DEATH(self.resume(), "check failed"); });
  fiber->resume();
}

TEST_F(FiberDeathTest, SuspendingFromAnotherStackIsABug) {
  // Once while the fiber is suspended, once while it waits for a fiber that it resumed.
  auto outer = make([&](Fiber& self) {
    auto inner = make([&](Fiber&) { EXPECT_DEATH(self.suspend(), "suspends elsewhere"); });
    inner->resume();
    self.suspend();
  });
  outer->resume();
  EXPECT_DEATH(outer->suspend(), "check failed");
  outer->resume();
}

TEST_F(FiberDeathTest, ResumingOnAnotherThreadIsABug) {
  // Compilers keep the addresses of thread-local variables across a switch.
  auto fiber = make([](Fiber& self) { self.suspend(); });
  fiber->resume();
  EXPECT_DEATH(std::thread([&] { fiber->resume(); }).join(), "another thread");
  fiber->resume();
}

TEST_F(FiberTest, LeavesWhatIsAbandonedAsItIs) {
  // Goal: no destructor runs, no exception passes, and the stack serves nobody else. Method: one
  // that is suspended with a value on its stack; its pool is empty afterwards.
  bool destroyed = false;
  struct Tells {
    bool& destroyed;
    ~Tells() { destroyed = true; }
  };
  auto fiber = make([&](Fiber& self) {
    const Tells tells{destroyed};
    const std::string owned(1000, 'x');  // It is not lost: its owner stays.
    self.suspend();
  });
  fiber->resume();
  const size_t live = pool_.live();
  const size_t idle = pool_.idle();
  fiber->abandon();
  EXPECT_TRUE(fiber->done());
  EXPECT_EQ(pool_.live(), live - 1);
  EXPECT_EQ(pool_.idle(), idle);
  fiber.reset();
  EXPECT_FALSE(destroyed);
}

TEST_F(FiberTest, CodeThatTerminatesLeavesItsStackWhereItMay) {
  // Goal: what is below goes on, and no destructor runs. Method: a fiber on top of another.
  bool destroyed = false;
  struct Tells {
    bool& destroyed;
    ~Tells() { destroyed = true; }
  };
  auto above = make([&](Fiber&) {
    const Tells tells{destroyed};
    std::terminate();
  });
  int asked = 0;
  above->set_on_terminate([&asked] { return ++asked == 1; });
  auto below = make([&](Fiber& self) {
    above->resume();
    self.suspend();
  });
  below->resume();
  EXPECT_TRUE(above->left());
  EXPECT_FALSE(above->done());
  EXPECT_FALSE(below->left());
  EXPECT_EQ(asked, 1);
  above->abandon();
  EXPECT_TRUE(above->done());
  below->resume();
  EXPECT_TRUE(below->done());
  above.reset();
  EXPECT_FALSE(destroyed);
}

TEST_F(FiberDeathTest, CodeThatTerminatesEndsTheProcessWhereItMayNot) {
  auto silent = make([](Fiber&) { std::terminate(); });
  EXPECT_DEATH(silent->resume(), "");
  auto refusing = make([](Fiber&) { std::terminate(); });
  refusing->set_on_terminate([] { return false; });
  EXPECT_DEATH(refusing->resume(), "");
  silent->discard();
  refusing->discard();
}

}  // namespace
}  // namespace rehearsal::fibers
