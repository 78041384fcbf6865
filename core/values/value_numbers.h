#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/complex.h>

#include <chrono>
#include <complex>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "core/values/value_io.h"

// Numbers, enums and lengths of time. Included by value.h.
namespace rehearsal {

template <>
struct Value<bool> {
  static void write(ValueWriter& writer, bool value) { writer.count(value ? 1 : 0); }
  static bool read(ValueReader& reader) { return reader.boolean(); }
  static void sign(WireSignature& signature) { signature += "bool"; }
};

// All integers are written alike, so that a constructor's arguments fit whatever width it takes.
template <std::integral T>
struct Value<T> {
  static void write(ValueWriter& writer, T value) {
    if constexpr (std::is_unsigned_v<T>)
      writer.unsigned_integer(value);
    else
      writer.integer(value);
  }
  static T read(ValueReader& reader) {
    const auto wide = [&] {
      if constexpr (std::is_unsigned_v<T>)
        return reader.unsigned_integer();
      else
        return reader.integer();
    }();
    const auto value = static_cast<T>(wide);
    if (value != wide) throw BadValue("an integer out of its type's range");
    return value;
  }
  static void sign(WireSignature& signature) {
    signature += (std::is_unsigned_v<T> ? "uint" : "int") + std::to_string(sizeof(T) * 8);
  }
};

// As are all floating-point numbers.
template <std::floating_point T>
struct Value<T> {
  static void write(ValueWriter& writer, T value) { writer.floating(static_cast<double>(value)); }
  static T read(ValueReader& reader) { return static_cast<T>(reader.floating()); }
  static void sign(WireSignature& signature) {
    signature += "float" + std::to_string(sizeof(T) * 8);
  }
};

template <>
struct Value<c10::Half> {
  static void write(ValueWriter& writer, c10::Half value) { writer.floating(value); }
  static c10::Half read(ValueReader& reader) { return static_cast<float>(reader.floating()); }
  static void sign(WireSignature& signature) { signature += "float16"; }
};

template <>
struct Value<c10::BFloat16> {
  static void write(ValueWriter& writer, c10::BFloat16 value) { writer.floating(value); }
  static c10::BFloat16 read(ValueReader& reader) { return static_cast<float>(reader.floating()); }
  static void sign(WireSignature& signature) { signature += "bfloat16"; }
};

namespace detail {
template <class Complex, std::floating_point T>
struct ComplexValue {
  static void write(ValueWriter& writer, const Complex& value) {
    writer.floating(static_cast<double>(value.real()));
    writer.floating(static_cast<double>(value.imag()));
  }
  static Complex read(ValueReader& reader) {
    const auto first = static_cast<T>(reader.floating());
    return Complex(first, static_cast<T>(reader.floating()));
  }
  static void sign(WireSignature& signature) {
    signature += "complex" + std::to_string(sizeof(Complex) * 8);
  }
};
}  // namespace detail

template <std::floating_point T>
struct Value<std::complex<T>> : detail::ComplexValue<std::complex<T>, T> {};

template <std::floating_point T>
struct Value<c10::complex<T>> : detail::ComplexValue<c10::complex<T>, T> {};

// An enum whose values run from 0 can say its last one, so that the others are refused:
//
//   enum class Colour { red, blue };
//   constexpr Colour last_enumerator(Colour) { return Colour::blue; }
template <class T>
requires std::is_enum_v<T>
struct Value<T> {
  using Number = std::underlying_type_t<T>;
  static void write(ValueWriter& writer, T value) {
    Value<Number>::write(writer, static_cast<Number>(value));
  }
  static T read(ValueReader& reader) {
    const Number number = Value<Number>::read(reader);
    if constexpr (requires(T value) {
                    { last_enumerator(value) } -> std::same_as<T>;
                  })
      if (std::cmp_less(number, 0) || number > static_cast<Number>(last_enumerator(T{})))
        throw BadValue("an enum without the value " + std::to_string(number));
    return static_cast<T>(number);
  }
  static void sign(WireSignature& signature) { Value<Number>::sign(signature); }
};

namespace detail {
// So many units of numerator / denominator seconds.
struct UnitCount {
  int64_t count;
  uint64_t numerator;
  uint64_t denominator;
};
// The count in other units. Throws BadValue if that is no whole number of 64 bits.
[[nodiscard]] int64_t count_in(const UnitCount& given, uint64_t numerator, uint64_t denominator);
// The units of a length of time, which follow its count. Throws BadValue for zero.
[[nodiscard]] uint64_t read_unit(ValueReader& reader);
}  // namespace detail

// A length of time is sent with its unit, and read in any other that holds it exactly. With a
// floating-point count it may be rounded.
template <class Count, class Period>
requires std::integral<Count> || std::floating_point<Count>
struct Value<std::chrono::duration<Count, Period>> {
  using Length = std::chrono::duration<Count, Period>;
  static constexpr bool is_exact = std::integral<Count>;

  template <class OtherCount, class OtherPeriod>
  requires(!is_exact || std::integral<OtherCount>) static void write(
      ValueWriter& writer, std::chrono::duration<OtherCount, OtherPeriod> length) {
    if constexpr (is_exact)
      Value<OtherCount>::write(writer, length.count());
    else
      writer.floating(static_cast<double>(length.count()));
    writer.count(OtherPeriod::num);
    writer.count(OtherPeriod::den);
  }
  static Length read(ValueReader& reader) {
    if constexpr (is_exact) {
      detail::UnitCount given{reader.integer(), 0, 0};
      given.numerator = detail::read_unit(reader);
      given.denominator = detail::read_unit(reader);
      const int64_t count = detail::count_in(given, Period::num, Period::den);
      if (!std::in_range<Count>(count)) throw BadValue("a length of time out of its type's range");
      return Length(static_cast<Count>(count));
    } else {
      const double count = reader.floating();
      const uint64_t numerator = detail::read_unit(reader);
      const uint64_t denominator = detail::read_unit(reader);
      if (numerator == Period::num && denominator == Period::den)
        return Length(static_cast<Count>(count));
      const double seconds =
          count * static_cast<double>(numerator) / static_cast<double>(denominator);
      return Length(static_cast<Count>(seconds * Period::den / Period::num));
    }
  }
  static void sign(WireSignature& signature) {
    signature += is_exact ? "duration" : "fractional_duration";
  }
};

}  // namespace rehearsal
