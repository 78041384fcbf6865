#include "scenarios/text/batches.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <numeric>

#include "command_line/wrong_use.h"

namespace rehearsal::text {
namespace {

std::vector<int64_t> counting(int64_t count) {
  std::vector<int64_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

TEST(Batches, ColumnsAreConsecutivePartsAndTargetsAreNextWords) {
  // Goal: the layout of the header. Method: 11 numbers in 2 columns, 3 steps.
  const std::vector<Batch> batches = make_batches(lay_out(counting(11), 2), 3);
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_TRUE(batches[0].inputs.equal(at::tensor({0, 5, 1, 6, 2, 7}, at::kLong).view({3, 2})));
  EXPECT_TRUE(batches[0].targets.equal(at::tensor({1, 6, 2, 7, 3, 8}, at::kLong).view({3, 2})));
  EXPECT_TRUE(batches[1].inputs.equal(at::tensor({3, 8}, at::kLong).view({1, 2})));
  EXPECT_TRUE(batches[1].targets.equal(at::tensor({4, 9}, at::kLong).view({1, 2})));
}

TEST(Batches, PartsOfTheColumnsMakeTheWhole) {
  // Goal: trainers together see what one would. Method: two parts beside each other.
  const at::Tensor whole = lay_out(counting(41), 4);
  const at::Tensor left = columns_of_part(whole, 0, 2);
  const at::Tensor right = columns_of_part(whole, 1, 2);
  EXPECT_EQ(left.size(1), 2);
  EXPECT_TRUE(at::cat({left, right}, 1).equal(whole));
}

TEST(Batches, TooShortTextIsRefused) {
  // Goal: never an empty epoch. Method: one word for each column, then two.
  EXPECT_THROW(lay_out(counting(7), 4), WrongUse);
  EXPECT_EQ(make_batches(lay_out(counting(8), 4), 2).size(), 1u);
}

}  // namespace
}  // namespace rehearsal::text
