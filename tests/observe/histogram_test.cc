#include "observe/histogram.h"

#include <gtest/gtest.h>

namespace rehearsal::observe {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(Histogram, ItsBoundsDoubleFromTenMicroseconds) {
  // Goal: the bounds are part of what others read. Method: the first, a middle and the last one.
  EXPECT_EQ(Histogram::bound(0), microseconds(10));
  EXPECT_EQ(Histogram::bound(10), microseconds(10'240));
  EXPECT_EQ(Histogram::bound(23), microseconds(83'886'080));
}

TEST(Histogram, ALengthLiesInTheFirstBucketWhoseBoundItDoesNotExceed) {
  // Goal: bounds are inclusive, and nothing is lost at either end. Method: lengths at the edges.
  Histogram histogram;
  histogram.add(nanoseconds(-5));
  histogram.add(microseconds(10));
  histogram.add(microseconds(10) + nanoseconds(1));
  histogram.add(microseconds(83'886'080));
  histogram.add(seconds(100));
  EXPECT_EQ(histogram.count_of(0), 2u);
  EXPECT_EQ(histogram.count_of(1), 1u);
  EXPECT_EQ(histogram.count_of(2), 0u);
  EXPECT_EQ(histogram.count_of(23), 1u);
  EXPECT_EQ(histogram.count_of(24), 1u);
  EXPECT_EQ(histogram.count(), 5u);
  EXPECT_EQ(histogram.sum(),
            microseconds(20) + nanoseconds(1) + microseconds(83'886'080) + seconds(100));
}

}  // namespace
}  // namespace rehearsal::observe
