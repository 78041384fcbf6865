#include "net_fake/delay.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdio>

#include "core/base/check.h"
#include "net_fake/decisions.h"

namespace rehearsal::net_fake {
namespace {

constexpr int kSteps = 64;         // entries of the table between two powers of two
constexpr int kFractionBits = 16;  // of the logarithms in it

// log2(1 + i/64) in units of 2^-16, digit by digit: square, and note whether it passed two.
constexpr uint32_t log2_of_step(uint64_t i) {
  uint64_t x = (uint64_t{1} << 31) + (i << 25);  // 1 + i/64 with 31 fraction bits
  if (i == kSteps) return 1u << kFractionBits;
  uint32_t result = 0;
  for (int bit = 0; bit < kFractionBits; ++bit) {
    x = (x * x) >> 31;
    result <<= 1;
    if (x >> 32 != 0) {
      result |= 1;
      x >>= 1;
    }
  }
  return result;
}

constexpr auto kLog2 = [] {
  std::array<uint32_t, kSteps + 1> table{};
  for (uint64_t i = 0; i <= kSteps; ++i) table[i] = log2_of_step(i);
  return table;
}();

// log2 of x > 0 in units of 2^-16, by the table and a straight line between its entries.
uint64_t log2_fixed(uint64_t x) {
  const int exponent = std::bit_width(x) - 1;
  const uint64_t mantissa = (x << (63 - exponent)) << 1;  // without its leading one, 64 bits
  const uint64_t step = mantissa >> 58;
  const uint64_t rest = (mantissa >> 42) & 0xffff;
  const uint64_t low = kLog2[step];
  const uint64_t high = kLog2[step + 1];
  return (static_cast<uint64_t>(exponent) << kFractionBits) + low + (((high - low) * rest) >> 16);
}

// span · draw / kDraws without overflow.
Duration scaled(Duration span, uint64_t draw) {
  const auto wide = static_cast<unsigned __int128>(span.count()) * draw;
  return Duration(static_cast<int64_t>(wide >> 32));
}

// No tail is longer than this, in means.
constexpr int64_t kTailMeans = 23;

Duration exponential_tail(Duration mean, uint64_t draw) {
  constexpr uint64_t kLn2 = 45426;  // ln 2 in units of 2^-16
  const uint64_t log = (uint64_t{32} << kFractionBits) - log2_fixed(Delay::kDraws - draw);
  const auto wide = static_cast<unsigned __int128>(mean.count()) * ((log * kLn2) >> 16);
  return Duration(static_cast<int64_t>(wide >> kFractionBits));
}

}  // namespace

Delay Delay::constant(Duration delay) {
  Delay result;
  result.min_ = delay;
  return result;
}

Delay Delay::uniform(Duration min, Duration max) {
  REHEARSAL_CHECK(min.count() >= 0 && min <= max, min.count(), max.count());
  Delay result;
  result.shape_ = Shape::uniform;
  result.min_ = min;
  result.span_ = max - min;
  return result;
}

Delay Delay::exponential(Duration min, Duration mean_beyond) {
  REHEARSAL_CHECK(min.count() >= 0 && mean_beyond.count() >= 0);
  Delay result;
  result.shape_ = Shape::exponential;
  result.min_ = min;
  result.span_ = mean_beyond;
  return result;
}

Delay Delay::bimodal(Duration min, Duration max, Slow slow) {
  REHEARSAL_CHECK(slow.min <= slow.max && slow.millionths <= kMillion, slow.millionths);
  Delay result = uniform(min, max);
  result.shape_ = Shape::bimodal;
  result.slow_ = slow;
  return result;
}

Duration Delay::sample(uint64_t draw) const {
  REHEARSAL_CHECK(draw < kDraws, draw);
  switch (shape_) {
    case Shape::constant:
      return min_;
    case Shape::uniform:
      return min_ + scaled(span_, draw);
    case Shape::exponential:
      return min_ + exponential_tail(span_, draw);
    case Shape::bimodal:
      break;
  }
  // The largest draws are the slow ones; within each part the draw is stretched to the whole range.
  const uint64_t fast = kDraws - kDraws / kMillion * slow_.millionths;
  if (draw < fast) return min_ + scaled(span_, (draw << 20) / fast << 12);
  const uint64_t slow = kDraws - fast;
  return slow_.min + scaled(slow_.max - slow_.min, ((draw - fast) << 20) / slow << 12);
}

Delay Delay::bounded(Duration longest) const {
  Delay result = *this;
  result.min_ = std::min(min_, longest);
  const Duration room = longest - result.min_;
  result.span_ = std::min(span_, shape_ == Shape::exponential ? room / kTailMeans : room);
  result.slow_.min = std::min(slow_.min, longest);
  result.slow_.max = std::min(slow_.max, longest);
  return result;
}

std::string Delay::describe() const {
  const std::string range = text_of(min_) + " to ";
  switch (shape_) {
    case Shape::constant:
      return text_of(min_);
    case Shape::uniform:
      return range + text_of(min_ + span_);
    case Shape::exponential:
      return text_of(min_) + " and an exponential tail of mean " + text_of(span_);
    case Shape::bimodal:
      break;
  }
  return range + text_of(min_ + span_) + ", at times " + text_of(slow_.min) + " to " +
         text_of(slow_.max);
}

std::string text_of(Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  char text[32];
  const auto print = [&text](double number, const char* unit) {
    std::snprintf(text, sizeof text, "%.4g %s", number, unit);
    return std::string(text);
  };
  if (duration.count() == 0) return "0";
  if (duration < std::chrono::milliseconds(1)) return print(seconds * 1e6, "µs");
  if (duration < std::chrono::seconds(1)) return print(seconds * 1e3, "ms");
  return print(seconds, "s");
}

}  // namespace rehearsal::net_fake
