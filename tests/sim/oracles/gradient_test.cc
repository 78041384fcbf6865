#include "sim/oracles/gradient.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rehearsal::sim {
namespace {

TEST(Gradient, IsSilentWhenEachContributionHasComeOnce) {
  // Goal: no false alarm. Method: every subset of the first eight, added in both directions.
  for (unsigned subset = 0; subset < 256; ++subset) {
    std::vector<size_t> expected;
    double up = 0;
    double down = 0;
    for (size_t j = 0; j < 8; ++j) {
      if ((subset >> j & 1) == 0) continue;
      expected.push_back(j);
      up += barcode(j);
    }
    for (size_t j = 8; j-- > 0;)
      if ((subset >> j & 1) != 0) down += barcode(j);
    EXPECT_FALSE(barcode_difference(expected, up));
    EXPECT_FALSE(barcode_difference(expected, down));
  }
}

TEST(Gradient, NamesWhatIsMissingAndWhatHasComeMoreThanOnce) {
  // Goal: which ones, by their numbers. Method: sums with known faults.
  const std::vector<size_t> expected = {0, 3, 5};
  EXPECT_EQ(barcode_difference(expected, barcode(0) + 2 * barcode(5)),
            "contribution 3 is missing, contribution 5 has come twice");
  EXPECT_EQ(barcode_difference(expected, 3 * barcode(0) + barcode(3) + barcode(5)),
            "contribution 0 has come three times");
  EXPECT_EQ(barcode_difference(expected, barcode(0) + barcode(3) + barcode(5) + barcode(25)),
            "contribution 25 does not belong here");
  EXPECT_EQ(barcode_difference({}, 0), std::nullopt);
}

TEST(Gradient, RefusesWhatIsNoSum) {
  // Goal: no number is misread. Method: a fraction, a negative one, too much, none.
  EXPECT_EQ(barcode_difference({0}, 0.5), "0.500000 is no sum of contributions");
  EXPECT_EQ(barcode_difference({0}, -1), "-1.000000 is no sum of contributions");
  EXPECT_NE(barcode_difference({0}, std::ldexp(1.0, 52)), std::nullopt);
  EXPECT_NE(barcode_difference({0}, std::nan("")), std::nullopt);
}

}  // namespace
}  // namespace rehearsal::sim
