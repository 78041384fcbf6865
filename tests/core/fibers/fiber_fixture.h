#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "core/fibers/fiber.h"

namespace rehearsal::fibers {

// Makes fibers from one pool, and checks that every stack came back.
class FiberFixture : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(pool_.live(), 0u); }

  // A suspended fiber whose body is called with the fiber itself.
  template <class Body>
  std::unique_ptr<Fiber> make(Body body, std::string label = "test") {
    auto self = std::make_unique<Fiber*>(nullptr);
    Fiber** place = self.get();
    auto fiber = std::make_unique<Fiber>(
        std::move(label), std::move(pool_.take()).value(),
        [self = std::move(self), body = std::move(body)]() mutable { body(**self); });
    *place = fiber.get();
    return fiber;
  }

  StackPool pool_;
};

}  // namespace rehearsal::fibers
