// Exceptions and fibers: the state of a throw belongs to the stack it happens on.
#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/fibers/fiber.h"
#include "tests/core/fibers/fiber_fixture.h"

namespace rehearsal::fibers {
namespace {

class FiberExceptionTest : public FiberFixture {};

std::string text_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& caught) {
    return caught.what();
  }
}

// Stands for the owner's way to end a parked fiber: the wait throws when the flag is set.
struct Killed {};

void wait(Fiber& self, const bool& killed) {
  self.suspend();
  if (killed) throw Killed{};
}

struct AtEnd {
  ~AtEnd() { text += "destroyed "; }
  std::string& text;
};

TEST_F(FiberExceptionTest, ExceptionThatLeavesTheBodyIsKeptForTheOwner) {
  // Nothing reaches std::terminate, and the exception is given out once.
  auto fiber = make([](Fiber&) { throw std::runtime_error("boom"); });
  fiber->resume();
  EXPECT_TRUE(fiber->done());
  EXPECT_EQ(text_of(fiber->take_exception()), "boom");
  EXPECT_EQ(fiber->take_exception(), nullptr);
  EXPECT_EQ(std::current_exception(), nullptr);
}

TEST_F(FiberExceptionTest, ExceptionThatIsNoStdExceptionIsKeptToo) {
  // Anything can be thrown.
  auto fiber = make([](Fiber& self) {
    self.suspend();
    throw 5;
  });
  fiber->resume();
  fiber->resume();
  EXPECT_THROW(std::rethrow_exception(fiber->take_exception()), int);
}

TEST_F(FiberExceptionTest, BodyThatReturnsLeavesNoException) {
  // An exception that was caught inside is nobody else's business.
  auto fiber = make([](Fiber&) {
    try {
      throw std::runtime_error("inside");
    } catch (const std::runtime_error&) {
    }
  });
  fiber->resume();
  EXPECT_EQ(fiber->take_exception(), nullptr);
}

TEST_F(FiberExceptionTest, ClosureIsDestroyedWhenTheBodyThrows) {
  // The captured value is free when resume has returned.
  auto value = std::make_shared<int>(7);
  auto fiber = make([value](Fiber&) { throw std::runtime_error("boom"); });
  fiber->resume();
  EXPECT_EQ(value.use_count(), 1);
}

TEST_F(FiberExceptionTest, TwoFibersParkedInsideCatchRethrowTheirOwnException) {
  // Both are in a handler at once and leave it in the order in which they came: with one shared
  // chain of caught exceptions, the first would rethrow the second's.
  std::vector<std::string> rethrown(2);
  std::vector<std::unique_ptr<Fiber>> fibers;
  for (size_t i = 0; i < 2; ++i)
    fibers.push_back(make([&rethrown, i](Fiber& self) {
      try {
        try {
          throw std::runtime_error("exception " + std::to_string(i));
        } catch (const std::exception&) {
          self.suspend();
          throw;
        }
      } catch (const std::exception& caught) {
        rethrown[i] = caught.what();
      }
    }));
  for (auto& fiber : fibers) fiber->resume();
  for (auto& fiber : fibers) fiber->resume();
  EXPECT_EQ(rethrown, (std::vector<std::string>{"exception 0", "exception 1"}));
}

TEST_F(FiberExceptionTest, ManyFibersInNestedHandlersKeepTheirOwn) {
  // Each of 100 fibers parks two handlers deep; they are resumed in another order each round.
  constexpr size_t kCount = 100;
  size_t right = 0;
  std::vector<std::unique_ptr<Fiber>> fibers;
  for (size_t i = 0; i < kCount; ++i)
    fibers.push_back(make([&right, i](Fiber& self) {
      try {
        throw i;
      } catch (size_t outer) {
        self.suspend();
        try {
          throw std::to_string(i);
        } catch (const std::string& inner) {
          self.suspend();
          if (inner == std::to_string(i)) ++right;
        }
        self.suspend();
        if (outer == i && std::current_exception() != nullptr) ++right;
      }
      if (std::current_exception() == nullptr) ++right;
    }));
  for (size_t stride : {1, 7, 3, 9})
    for (size_t i = 0; i < kCount; ++i) fibers[i * stride % kCount]->resume();
  EXPECT_EQ(right, 3 * kCount);
}

TEST_F(FiberExceptionTest, FiberDoesNotSeeTheExceptionItsResumerHandles) {
  // Resume from inside a handler; the handler's exception is untouched by one inside the fiber.
  bool seen = true;
  auto fiber = make([&](Fiber& self) {
    seen = std::current_exception() != nullptr;
    try {
      throw std::runtime_error("the fiber's");
    } catch (const std::exception&) {
      self.suspend();
    }
  });
  try {
    throw std::runtime_error("the resumer's");
  } catch (const std::exception&) {
    fiber->resume();
    EXPECT_EQ(text_of(std::current_exception()), "the resumer's");
  }
  EXPECT_FALSE(seen);
  EXPECT_EQ(std::current_exception(), nullptr);
  fiber->resume();
}

TEST_F(FiberExceptionTest, FiberMaySuspendWhileItsStackUnwinds) {
  // A destructor suspends during unwinding; meanwhile others throw and count none of it.
  struct Suspends {
    ~Suspends() {
      before = std::uncaught_exceptions();
      self.suspend();
      after = std::uncaught_exceptions();
    }
    Fiber& self;
    int& before;
    int& after;
  };
  int before = 0;
  int after = 0;
  std::string caught_text;
  auto fiber = make([&](Fiber& self) {
    try {
      Suspends suspends{self, before, after};
      throw std::runtime_error("unwinding");
    } catch (const std::exception& caught) {
      caught_text = caught.what();
    }
  });
  fiber->resume();
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  EXPECT_THROW(throw std::logic_error("meanwhile"), std::logic_error);
  fiber->resume();
  EXPECT_EQ(before, 1);
  EXPECT_EQ(after, 1);
  EXPECT_EQ(caught_text, "unwinding");
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST_F(FiberExceptionTest, KilledFiberUnwindsAndRunsItsDestructors) {
  // The owner sets its flag and resumes: the wait throws, and every frame is destroyed.
  std::string text;
  bool killed = false;
  auto fiber = make([&](Fiber& self) {
    AtEnd outer{text};
    [&] {
      AtEnd inner{text};
      wait(self, killed);
      text += "not reached ";
    }();
  });
  fiber->resume();
  EXPECT_EQ(text, "");
  killed = true;
  fiber->resume();
  EXPECT_TRUE(fiber->done());
  EXPECT_EQ(text, "destroyed destroyed ");
  EXPECT_THROW(std::rethrow_exception(fiber->take_exception()), Killed);
}

TEST_F(FiberExceptionTest, KilledFiberThatSwallowsItIsToldAgain) {
  // Every later wait throws too, so the owner's loop ends.
  bool killed = false;
  int swallowed = 0;
  auto fiber = make([&](Fiber& self) {
    while (swallowed < 3) {
      try {
        wait(self, killed);
      } catch (const Killed&) {
        ++swallowed;
      }
    }
  });
  fiber->resume();
  killed = true;
  int resumes = 0;
  for (; !fiber->done(); ++resumes) fiber->resume();
  EXPECT_EQ(resumes, 3);
  EXPECT_EQ(swallowed, 3);
}

}  // namespace
}  // namespace rehearsal::fibers
