#include "core/base/ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>

#include "core/base/hash.h"

namespace rehearsal {
namespace {

TEST(Ring, DoesWhatADequeDoes) {
  // 20,000 drawn steps beside a std::deque: push, pop from either end, look at a drawn place.
  Ring<uint64_t> ring;
  std::deque<uint64_t> expected;
  for (uint64_t step = 0; step < 20'000; ++step) {
    const uint64_t drawn = mix(step);
    const bool grows = (step / 500) % 2 == 0;  // up to hundreds, and back to none
    if (drawn % 4 < (grows ? 3u : 1u)) {
      ring.push(uint64_t{step});
      expected.push_back(step);
    } else if (!expected.empty()) {
      if (drawn % 8 < 4) {
        ASSERT_EQ(ring.pop(), expected.front());
        expected.pop_front();
      } else {
        ASSERT_EQ(ring.pop_back(), expected.back());
        expected.pop_back();
      }
    }
    ASSERT_EQ(ring.size(), expected.size());
    if (expected.empty()) continue;
    const size_t place = drawn % expected.size();
    ASSERT_EQ(ring.at(place), expected[place]);
    ASSERT_EQ(ring.front(), expected.front());
    ASSERT_EQ(ring.back(), expected.back());
  }
}

TEST(Ring, WhatIsTakenOutIsNotKept) {
  Ring<std::shared_ptr<int>> ring;
  const auto value = std::make_shared<int>(1);
  ring.push(std::shared_ptr<int>(value));
  ring.push(std::shared_ptr<int>(value));
  EXPECT_EQ(value.use_count(), 3);
  EXPECT_EQ(ring.pop(), value);
  EXPECT_EQ(ring.pop_back(), value);
  EXPECT_EQ(value.use_count(), 1);
}

}  // namespace
}  // namespace rehearsal
