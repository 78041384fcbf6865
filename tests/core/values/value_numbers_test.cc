#include "core/values/value_numbers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <ratio>

#include "core/functions/function_registry.h"
#include "tests/core/values/value_round_trip.h"

namespace rehearsal {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

template <class T>
void expect_limits_round_trip() {
  using Limits = std::numeric_limits<T>;
  for (const T value : {T{0}, T{1}, Limits::min(), static_cast<T>(Limits::max() / 2),
                        static_cast<T>(Limits::max() / 2 + 1), Limits::max()})
    expect_round_trip(value);
}

TEST(ValueNumbers, IntegersOfEveryWidthComeBack) {
  expect_limits_round_trip<int8_t>();
  expect_limits_round_trip<int16_t>();
  expect_limits_round_trip<int32_t>();
  expect_limits_round_trip<int64_t>();
  expect_limits_round_trip<uint8_t>();
  expect_limits_round_trip<uint16_t>();
  expect_limits_round_trip<uint32_t>();
  expect_limits_round_trip<uint64_t>();
  expect_limits_round_trip<char>();
  expect_limits_round_trip<unsigned long long>();
  expect_round_trip(std::byte{200});
  expect_round_trip(true);
  expect_round_trip(false);
}

TEST(ValueNumbers, FloatingPointNumbersComeBackToTheBit) {
  for (const double value : {0.0, -0.0, 1.5, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::denorm_min()})
    expect_round_trip(value);
  expect_round_trip(1.25f);
  EXPECT_TRUE(std::isnan(read<double>(written(std::nan("")))));
  for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
    const c10::Half half(static_cast<uint16_t>(bits), c10::Half::from_bits());
    const c10::BFloat16 bfloat(static_cast<uint16_t>(bits), c10::BFloat16::from_bits());
    const bool is_half = !std::isnan(static_cast<float>(half));
    const bool is_bfloat = !std::isnan(static_cast<float>(bfloat));
    ASSERT_TRUE(!is_half || read<c10::Half>(written(half)).x == bits) << bits;
    ASSERT_TRUE(!is_bfloat || read<c10::BFloat16>(written(bfloat)).x == bits) << bits;
  }
}

TEST(ValueNumbers, ComplexNumbersOfBothLibrariesComeBack) {
  expect_round_trip(std::complex<float>(1.5f, -2.5f));
  expect_round_trip(std::complex<double>(1e300, -0.0));
  expect_round_trip(c10::complex<float>(1.5f, -2.5f));
  expect_round_trip(c10::complex<double>(-1, 1e-300));
  EXPECT_EQ(read<c10::complex<double>>(written(std::complex<double>(1, 2))),
            c10::complex<double>(1, 2));
}

TEST(ValueNumbers, IntegersNearPowersOfTwoComeBack) {
  // Every place where the length of a number changes, and above 2^63 its sixty-fifth bit.
  for (int bit = 0; bit < 63; ++bit)
    for (const int64_t offset : {-1, 0, 1}) {
      expect_round_trip((int64_t{1} << bit) + offset);
      expect_round_trip(-((int64_t{1} << bit) + offset));
    }
  for (int bit = 0; bit < 64; ++bit)
    for (const uint64_t number :
         {uint64_t{1} << bit, (uint64_t{1} << bit) - 1, ~uint64_t{0} >> bit})
      expect_round_trip(number);
}

TEST(ValueNumbers, WhatFitsASignedIntegerHasTheSameBytesInAnUnsignedOne) {
  for (const uint64_t number : {uint64_t{0}, uint64_t{63}, uint64_t{64}, uint64_t{INT64_MAX}})
    EXPECT_EQ(written(number).values, written(static_cast<int64_t>(number)).values);
  EXPECT_EQ(written(~uint64_t{0}).values.size(), 10u);
}

TEST(ValueNumbers, AnIntegerIsReadAsAnyWidthThatHoldsIt) {
  EXPECT_EQ(read<int64_t>(written(int8_t{-5})), -5);
  EXPECT_EQ(read<uint8_t>(written(int64_t{255})), 255);
  for (const int64_t number : {int64_t{256}, int64_t{-1}, INT64_MIN})
    EXPECT_EQ(refusal<uint8_t>(written(number)), "an integer out of its type's range");
  EXPECT_EQ(refusal<uint64_t>(written(int64_t{-1})), "an integer out of its type's range");
  EXPECT_EQ(refusal<uint64_t>(written(INT64_MIN)), "an integer out of its type's range");
  EXPECT_EQ(refusal<uint32_t>(written(uint64_t{1} << 63)), "an integer out of its type's range");
  EXPECT_EQ(refusal<int64_t>(written(uint64_t{1} << 63)), "a number longer than 64 bits");
  EXPECT_EQ(refusal<uint64_t>(std::string(9, '\xff') + "\x04"), "a number longer than 65 bits");
  EXPECT_EQ(refusal<uint64_t>(std::string(9, '\x80')), "the values end too early");
}

TEST(ValueNumbers, SignaturesNameKindAndWidth) {
  EXPECT_EQ(signature_of<uint64_t>(), "uint64");
  EXPECT_EQ(signature_of<std::complex<float>>(), "complex64");
  EXPECT_EQ(signature_of<c10::complex<double>>(), "complex128");
  EXPECT_EQ(signature_of<c10::Half>(), "float16");
  EXPECT_EQ(signature_of<c10::BFloat16>(), "bfloat16");
  EXPECT_EQ(signature_of<milliseconds>(), signature_of<hours>());
  EXPECT_EQ(FunctionRegistry::loosen("bfloat16,float16,float64,uint8"), "float,float,float,int");
}

// ---- enums ----

enum class Shade : uint8_t { red, green, blue };
constexpr Shade last_enumerator(Shade) { return Shade::blue; }
enum class Signed : int { below = -1, zero, one };
constexpr Signed last_enumerator(Signed) { return Signed::one; }
enum class Open : uint8_t { red = 1 };

TEST(ValueNumbers, AnEnumThatSaysItsLastValueRefusesOthers) {
  expect_round_trip(Shade::blue);
  EXPECT_EQ(refusal<Shade>(written(3)), "an enum without the value 3");
  EXPECT_EQ(refusal<Signed>(written(-1)), "an enum without the value -1");
  EXPECT_EQ(read<Open>(written(77)), static_cast<Open>(77));
}

// ---- lengths of time ----

TEST(ValueNumbers, LengthsOfTimeComeBackInEveryUnit) {
  expect_round_trip(nanoseconds::max());
  expect_round_trip(nanoseconds::min());
  expect_round_trip(hours(-7));
  expect_round_trip(std::chrono::duration<int8_t, std::ratio<7, 30>>(100));
  expect_round_trip(std::chrono::duration<double>(0.1));
  expect_round_trip(std::chrono::duration<float, std::milli>(2.5f));
  expect_round_trip(std::chrono::duration<int64_t, std::atto>(INT64_MAX));
}

// Written in one unit, read in another.
template <class To, class From>
To converted(From length) {
  Payload payload;
  ValueWriter writer(payload);
  Value<To>::write(writer, length);
  return read<To>(std::move(payload));
}
template <class To, class From>
std::string refusal_of(From length) {
  Payload payload;
  ValueWriter writer(payload);
  Value<To>::write(writer, length);
  return refusal<To>(std::move(payload));
}

TEST(ValueNumbers, ALengthOfTimeIsReadInAnyUnitThatHoldsItExactly) {
  using Third = std::chrono::duration<int64_t, std::ratio<1, 3>>;
  EXPECT_EQ(converted<milliseconds>(seconds(5)), milliseconds(5000));
  EXPECT_EQ(converted<seconds>(milliseconds(-5000)), seconds(-5));
  EXPECT_EQ(converted<Third>(hours(1)), Third(10800));
  EXPECT_EQ(converted<std::chrono::duration<double>>(milliseconds(1500)).count(), 1.5);
  EXPECT_EQ(refusal_of<seconds>(milliseconds(5001)),
            "a length of time that is no whole number of its type's units");
  EXPECT_EQ(refusal_of<nanoseconds>(hours(INT64_MAX / 1000)),
            "a length of time out of its type's range");
  EXPECT_EQ((refusal_of<std::chrono::duration<int8_t>>(seconds(128))),
            "a length of time out of its type's range");
}

TEST(ValueNumbers, ALengthOfTimeWithoutAUnitIsRefused) {
  const std::string huge(std::string(8, '\xff') + "\x7f");
  EXPECT_EQ(refusal<seconds>(std::string("\x02\x00\x01", 3)), "a length of time without a unit");
  EXPECT_EQ(refusal<seconds>(std::string("\x02\x01\x00", 3)), "a length of time without a unit");
  // The largest units that can be written overflow nothing on the way.
  EXPECT_EQ(refusal<nanoseconds>("\x02" + huge + "\x01"),
            "a length of time out of its type's range");
  EXPECT_EQ(refusal<hours>("\x02\x01" + huge),
            "a length of time that is no whole number of its type's units");
}

TEST(ValueNumbers, EveryTruncationAndEveryChangedByteIsAnErrorOrAValue) {
  expect_only_bad_values(~uint64_t{0});
  expect_only_bad_values(std::complex<float>(1, 2));
  expect_only_bad_values(nanoseconds(123456789));
  expect_only_bad_values(std::chrono::duration<double, std::nano>(1.5));
  expect_only_bad_values(Shade::green);
}

}  // namespace
}  // namespace rehearsal
