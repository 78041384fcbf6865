#include "scenarios/parameter_server/digits.h"

#include <gtest/gtest.h>
#include <torch/types.h>

namespace rehearsal::parameter_server {
namespace {

TEST(Digits, AreAFunctionOfTheirSeedAndHowManyThereAre) {
  // Goal: every process draws the same. Method: twice the same seed, then another.
  const Digits one = draw_digits(5, 40);
  const Digits again = draw_digits(5, 40);
  const Digits other = draw_digits(6, 40);
  EXPECT_EQ(one.pictures.sizes(), torch::IntArrayRef({40, 1, 10, 10}));
  EXPECT_TRUE(one.pictures.equal(again.pictures));
  EXPECT_TRUE(one.labels.equal(again.labels));
  EXPECT_FALSE(one.pictures.equal(other.pictures));
  EXPECT_FALSE(one.labels.equal(other.labels));
}

TEST(Digits, EachComesAboutAsOftenAsEachOther) {
  // Goal: no class is missing. Method: the counts of a thousand.
  const torch::Tensor counts = torch::bincount(draw_digits(1, 1000).labels, {}, 10);
  EXPECT_EQ(counts.size(0), 10);
  EXPECT_GT(counts.min().item<int64_t>(), 60);
  EXPECT_LT(counts.max().item<int64_t>(), 140);
}

TEST(Digits, OfOneKindDifferByPlaceAndNoise) {
  // Goal: there is something to learn. Method: the mean picture of the ones is not that of the
  // eights, and no two ones are equal.
  const Digits digits = draw_digits(2, 1000);
  const auto of = [&](int64_t digit) {
    return digits.pictures.index({digits.labels.eq(digit)}).flatten(1);
  };
  EXPECT_GT((of(1).mean(0) - of(8).mean(0)).abs().max().item<double>(), 0.3);
  EXPECT_GT((of(1)[0] - of(1)[1]).abs().max().item<double>(), 0.1);
}

TEST(Digits, APartIsSomeOfThemInTheirOrder) {
  const Digits digits = draw_digits(3, 10);
  const Digits part = part_of(digits, 4, 3);
  EXPECT_EQ(part.labels.size(0), 3);
  EXPECT_TRUE(part.labels[0].equal(digits.labels[4]));
  EXPECT_TRUE(part.pictures[2].equal(digits.pictures[6]));
}

}  // namespace
}  // namespace rehearsal::parameter_server
