#include "core/base/interval_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "core/base/hash.h"

namespace rehearsal {
namespace {

// The meaning of an IntervalSet, kept the plain way.
class Model {
 public:
  explicit Model(uint64_t first) : first_(first) {}
  bool insert(uint64_t number) { return number >= first_ && numbers_.insert(number).second; }
  [[nodiscard]] bool contains(uint64_t number) const {
    return number < first_ || numbers_.contains(number);
  }
  [[nodiscard]] uint64_t base() const {
    uint64_t base = first_;
    while (numbers_.contains(base)) ++base;
    return base;
  }
  [[nodiscard]] bool contiguous() const {
    return std::none_of(numbers_.begin(), numbers_.end(),
                        [base = base()](uint64_t number) { return number > base; });
  }

 private:
  const uint64_t first_;
  std::set<uint64_t> numbers_;
};

void expect_equal(const IntervalSet& set, const Model& model, uint64_t most) {
  ASSERT_EQ(set.base(), model.base());
  ASSERT_EQ(set.contiguous(), model.contiguous());
  for (uint64_t number = 0; number <= most + 2; ++number)
    ASSERT_EQ(set.contains(number), model.contains(number)) << number;
}

TEST(IntervalSet, AgreesWithASetForEveryOrderOfSevenNumbers) {
  // Insert 1 … 7 in each of the 5,040 orders and compare after each step.
  std::vector<uint64_t> order(7);
  std::iota(order.begin(), order.end(), 1);
  do {
    IntervalSet set(1);
    Model model(1);
    for (const uint64_t number : order) {
      ASSERT_EQ(set.insert(number), model.insert(number));
      expect_equal(set, model, 7);
    }
    EXPECT_EQ(set.base(), 8u);
    EXPECT_TRUE(set.contiguous());
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(IntervalSet, AgreesWithASetForEverySequenceOfSixInsertionsWithRepeats) {
  // All 5^6 sequences over 0 … 4, from a first number of 0 and of 2.
  for (const uint64_t first : {0, 2}) {
    for (uint64_t code = 0; code < 15625; ++code) {
      IntervalSet set(first);
      Model model(first);
      uint64_t rest = code;
      for (int step = 0; step < 6; ++step, rest /= 5)
        ASSERT_EQ(set.insert(rest % 5), model.insert(rest % 5)) << code << " step " << step;
      expect_equal(set, model, 5);
    }
  }
}

TEST(IntervalSet, AgreesWithASetWhenFarNumbersComeAndGapsClose) {
  // 2,000 drawn numbers below 300: intervals join on both sides many times.
  IntervalSet set(1);
  Model model(1);
  for (uint64_t i = 0; i < 2000; ++i) {
    const uint64_t number = mix(7, i) % 300;
    ASSERT_EQ(set.insert(number), model.insert(number)) << number;
    if (i % 50 == 0) expect_equal(set, model, 300);
  }
  expect_equal(set, model, 300);
}

TEST(IntervalSet, NeverSlidesOverAGap) {
  // However much comes after a gap, the base stays before it.
  IntervalSet set(1);
  for (uint64_t number = 2; number < 10000; ++number) ASSERT_TRUE(set.insert(number));
  EXPECT_EQ(set.base(), 1u);
  EXPECT_FALSE(set.contains(1));
  EXPECT_FALSE(set.contiguous());
  EXPECT_TRUE(set.insert(1));
  EXPECT_EQ(set.base(), 10000u);
  EXPECT_TRUE(set.contiguous());
}

TEST(IntervalSet, StandsTheLargestNumbers) {
  // The end of an interval must not wrap around to zero.
  IntervalSet set(0);
  EXPECT_TRUE(set.insert(UINT64_MAX - 1));
  EXPECT_FALSE(set.insert(UINT64_MAX - 1));
  EXPECT_TRUE(set.contains(UINT64_MAX - 1));
  EXPECT_FALSE(set.insert(UINT64_MAX));
  EXPECT_FALSE(set.contains(UINT64_MAX - 2));
  EXPECT_EQ(set.base(), 0u);
}

}  // namespace
}  // namespace rehearsal
