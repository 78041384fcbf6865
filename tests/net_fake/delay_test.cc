#include "net_fake/delay.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/hash.h"

namespace rehearsal::net_fake {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr uint64_t kLast = Delay::kDraws - 1;

double mean_of(const Delay& delay, int samples = 20'000) {
  double sum = 0;
  for (int i = 0; i < samples; ++i)
    sum += static_cast<double>(delay.sample(mix(static_cast<uint64_t>(i)) >> 32).count());
  return sum / samples;
}

TEST(Delay, AConstantNeedsNoDraw) {
  const Delay delay = Delay::constant(milliseconds(3));
  EXPECT_TRUE(delay.is_constant());
  EXPECT_EQ(delay.sample(0), milliseconds(3));
  EXPECT_EQ(delay.sample(kLast), milliseconds(3));
}

TEST(Delay, DrawZeroIsTheLeastDelayOfEveryShape) {
  const Delay shapes[] = {
      Delay::uniform(milliseconds(1), milliseconds(9)),
      Delay::exponential(milliseconds(1), milliseconds(9)),
      Delay::bimodal(milliseconds(1), milliseconds(2),
                     {.min = milliseconds(50), .max = milliseconds(60), .millionths = 100'000})};
  for (const Delay& delay : shapes) {
    EXPECT_FALSE(delay.is_constant());
    EXPECT_EQ(delay.sample(0), milliseconds(1));
    EXPECT_EQ(delay.min(), milliseconds(1));
  }
}

TEST(Delay, UniformCoversItsRangeEvenly) {
  const Delay delay = Delay::uniform(milliseconds(1), milliseconds(9));
  EXPECT_LE(delay.sample(kLast), milliseconds(9));
  EXPECT_GT(delay.sample(kLast), milliseconds(9) - microseconds(1));
  EXPECT_EQ(delay.sample(Delay::kDraws / 2), milliseconds(5));
  EXPECT_NEAR(mean_of(delay), 5e6, 0.1e6);
}

// Goal: the integer logarithm is the real one. Method: compare quantiles with −mean·ln(1 − p).
TEST(Delay, ExponentialHasTheQuantilesOfItsMean) {
  const Delay delay = Delay::exponential({}, milliseconds(10));
  for (const double p : {0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.999999}) {
    const auto draw = static_cast<uint64_t>(p * static_cast<double>(Delay::kDraws));
    const double exact = -10e6 * std::log(1.0 - p);
    EXPECT_NEAR(static_cast<double>(delay.sample(draw).count()), exact, 10e6 * 0.001) << p;
  }
  EXPECT_LT(delay.sample(kLast), milliseconds(230));
  EXPECT_NEAR(mean_of(delay), 10e6, 0.3e6);
}

TEST(Delay, ExponentialNeverFallsAsTheDrawRises) {
  const Delay delay = Delay::exponential(microseconds(1), milliseconds(1));
  Duration last{};
  for (uint64_t draw = 0; draw < Delay::kDraws; draw += Delay::kDraws / 10'007) {
    EXPECT_GE(delay.sample(draw), last) << draw;
    last = delay.sample(draw);
  }
}

TEST(Delay, BimodalIsSlowAsOftenAsItsProbabilitySays) {
  const Delay delay =
      Delay::bimodal(milliseconds(1), milliseconds(2),
                     {.min = milliseconds(50), .max = milliseconds(60), .millionths = 200'000});
  int slow = 0;
  for (uint64_t i = 0; i < 10'000; ++i) {
    const Duration sample = delay.sample(mix(i) >> 32);
    EXPECT_TRUE((sample >= milliseconds(1) && sample <= milliseconds(2)) ||
                (sample >= milliseconds(50) && sample <= milliseconds(60)));
    slow += sample >= milliseconds(50) ? 1 : 0;
  }
  EXPECT_NEAR(slow, 2000, 150);
  EXPECT_GT(delay.sample(kLast), milliseconds(59));
}

TEST(Delay, ABoundedDelayKeepsItsShapeBelowTheBound) {
  const Delay uniform = Delay::uniform(milliseconds(1), milliseconds(9)).bounded(milliseconds(5));
  EXPECT_EQ(uniform.sample(0), milliseconds(1));
  EXPECT_EQ(uniform.sample(Delay::kDraws / 2), milliseconds(3));
  const Delay tail = Delay::exponential(milliseconds(1), milliseconds(9)).bounded(milliseconds(5));
  EXPECT_LE(tail.sample(kLast), milliseconds(5));
  EXPECT_GT(tail.sample(kLast), milliseconds(4));
  const Delay bimodal =
      Delay::bimodal(milliseconds(1), milliseconds(2),
                     {.min = milliseconds(50), .max = milliseconds(60), .millionths = 100'000})
          .bounded(milliseconds(5));
  EXPECT_EQ(bimodal.sample(kLast), milliseconds(5));
  EXPECT_EQ(Delay::constant(milliseconds(9)).bounded(milliseconds(5)).sample(0), milliseconds(5));
}

TEST(Delay, IsDescribedForPeople) {
  EXPECT_EQ(Delay::constant({}).describe(), "0");
  EXPECT_EQ(Delay::uniform(microseconds(50), milliseconds(2)).describe(), "50 µs to 2 ms");
  EXPECT_EQ(Delay::exponential(milliseconds(30), microseconds(1500)).describe(),
            "30 ms and an exponential tail of mean 1.5 ms");
  EXPECT_EQ(Delay::bimodal(microseconds(1), microseconds(2),
                           {.min = milliseconds(50), .max = milliseconds(60), .millionths = 1})
                .describe(),
            "1 µs to 2 µs, at times 50 ms to 60 ms");
}

}  // namespace
}  // namespace rehearsal::net_fake
