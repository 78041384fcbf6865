#include "scenarios/random_model/sums.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace rehearsal::random_model {
namespace {

at::Tensor numbers(std::initializer_list<double> values, at::ScalarType type = at::kFloat) {
  return at::tensor(at::ArrayRef<double>(values), at::kDouble).to(type);
}

TEST(SumDifference, IsNoneForTheSumOfTwoInEitherOrder) {
  const at::Tensor a = numbers({0.1, 1e8});
  const at::Tensor b = numbers({0.7, 1});
  EXPECT_EQ(sum_difference(a + b, {a, b}, false), std::nullopt);
  EXPECT_EQ(sum_difference(a + b, {b, a}, false), std::nullopt);
}

TEST(SumDifference, SeesTheLastBitOfASumOfTwo) {
  const at::Tensor a = numbers({0.5});
  const at::Tensor b = numbers({0.25});
  const at::Tensor next = numbers({0.75 + 0x1p-24});
  EXPECT_EQ(sum_difference(next, {a, b}, false), "it is [0.75000005960464478], not [0.75]");
}

TEST(SumDifference, TellsNoneFromZeroAndOneZeroFromTheOther) {
  // Goal: an undefined gradient is not taken for one of zeros. Method: both, either way.
  const at::Tensor zero = numbers({0});
  EXPECT_EQ(sum_difference({}, {}, false), std::nullopt);
  EXPECT_EQ(sum_difference(zero, {}, false), "it is [0] though nothing contributes to it");
  EXPECT_EQ(sum_difference({}, {zero}, false), "there is none");
  EXPECT_NE(sum_difference(numbers({-0.0}), {zero}, false), std::nullopt);
}

TEST(SumDifference, LeavesTheSignOfComplexZeroOpen) {
  // Goal: a sum of complex numbers is right in either order. Method: two whose orders differ.
  const at::Tensor a = at::complex(numbers({-0.0}), numbers({-0.0}));
  const at::Tensor b = at::complex(numbers({-0.0}), numbers({0}));
  EXPECT_FALSE(same_bits(a + b, b + a));
  EXPECT_EQ(sum_difference(a + b, {a, b}, false), std::nullopt);
  EXPECT_EQ(sum_difference(b + a, {a, b}, false), std::nullopt);
  EXPECT_NE(sum_difference(a + b + 1, {a, b}, false), std::nullopt);
}

TEST(SumDifference, ShowsTheElementThatDiffers) {
  const at::Tensor zeros = at::zeros({8});
  EXPECT_EQ(sum_difference(zeros + numbers({0, 0, 0, 0, 0, 0, 0, 2}), {zeros}, false),
            "it is [0, 0, 0, 0, 0, 0, …], not [0, 0, 0, 0, 0, 0, …]: element 7 is 2, not 0");
}

TEST(SumDifference, SeesAnotherTypeAndShape) {
  const at::Tensor a = numbers({1, 2});
  EXPECT_EQ(sum_difference(a.to(at::kDouble), {a}, false), "it has another type or shape");
  EXPECT_EQ(sum_difference(a.reshape({2, 1}), {a}, false), "it has another type or shape");
}

TEST(SumDifference, LeavesOneUlpToTheOrderOfThree) {
  // Goal: all orders of three terms pass, and nothing that is further off. Method: terms whose
  // orders differ; the sum and its neighbours, in each type.
  for (const auto& [type, ulp] : {std::pair{at::kHalf, 0x1p-10}, std::pair{at::kBFloat16, 0x1p-7},
                                  std::pair{at::kFloat, 0x1p-23}}) {
    const at::Tensor one = numbers({1}, type);
    const at::Tensor small = numbers({ulp / 2}, type);
    const at::Tensor left = (one + small) + small;
    const at::Tensor right = one + (small + small);
    EXPECT_FALSE(same_bits(left, right)) << at::toString(type);
    EXPECT_EQ(sum_difference(left, {one, small, small}, false), std::nullopt);
    EXPECT_EQ(sum_difference(right, {one, small, small}, false), std::nullopt);
    EXPECT_EQ(sum_difference(numbers({1 + 2 * ulp}, type), {one, small, small}, false),
              std::nullopt);
    EXPECT_NE(sum_difference(numbers({1 + 3 * ulp}, type), {one, small, small}, false),
              std::nullopt);
  }
}

TEST(SumDifference, KeepsWhatRoundingTakesAwayFromDoubles) {
  // Goal: the reference of doubles is more exact than they are. Method: terms of which additions
  // one by one lose the last two.
  const at::Tensor large = numbers({1}, at::kDouble);
  const at::Tensor tiny = numbers({0x1p-53}, at::kDouble);
  const at::Tensor sum = (large + tiny) + tiny;
  EXPECT_TRUE(same_bits(sum, large));
  EXPECT_EQ(sum_difference(large, {tiny, tiny, large}, false), std::nullopt);
  EXPECT_NE(sum_difference(numbers({1 - 0x1p-52}, at::kDouble), {tiny, tiny, large}, false),
            std::nullopt);
}

TEST(SumDifference, LeavesTheSignOfZeroToSumsThatAreExactAndNothingElse) {
  const at::Tensor one = numbers({1}, at::kDouble);
  EXPECT_EQ(sum_difference(numbers({3}, at::kDouble), {one, one, one}, true), std::nullopt);
  EXPECT_EQ(sum_difference(numbers({3 + 0x1p-51}, at::kDouble), {one, one, one}, true),
            "it is [3.0000000000000004], not [3]");
  const at::Tensor zero = numbers({0}, at::kDouble);
  EXPECT_EQ(sum_difference(-zero, {zero}, true), std::nullopt);
  EXPECT_EQ(sum_difference({}, {zero}, true), "there is none");
}

}  // namespace
}  // namespace rehearsal::random_model
