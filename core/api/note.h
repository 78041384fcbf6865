#pragma once

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <concepts>
#include <locale>
#include <optional>
#include <ranges>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/values/value_structs.h"

namespace at {
class Tensor;
}

// A value as text, for people: what `note` of a worker or a served function writes down.
namespace rehearsal {

class Caller;

struct NoteValue {
  std::string text;
  bool is_number = false;  // a finite one: it may be drawn as a curve
};

// A tensor of one element is that number, one of at most 16 has them behind its shape, of all
// others it is type and shape.
[[nodiscard]] NoteValue note_value(const at::Tensor& tensor);

template <class T>
[[nodiscard]] NoteValue note_value(const T& value);

// Has the node trace the note. Any thread, any stack; never parks. A text longer than 1,000
// bytes is cut.
void add_note(const Caller& caller, std::string_view name, NoteValue value);

namespace detail {

template <class T>
concept HasText = requires(const T& value) {
  { to_string(value) } -> std::convertible_to<std::string>;
};
template <class T>
concept Streamable = requires(std::ostream& out, const T& value) {
  out << value;
};
template <class T>
concept DescribesFields = std::is_class_v<T> && requires(T& value) {
  describe(value, AnyFields{});
};
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_duration = false;
template <class Rep, class Period>
inline constexpr bool is_duration<std::chrono::duration<Rep, Period>> = true;
template <class>
inline constexpr bool can_be_noted = false;

// The fewest digits that tell it from all others of its type.
template <class Number>
NoteValue number_value(Number number) {
  std::array<char, 128> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  bool is_finite = true;
  if constexpr (std::is_floating_point_v<Number>) is_finite = std::isfinite(number);
  return {std::string(text.data(), end), is_finite};
}

constexpr size_t kNotedElements = 32;  // of a range; more are left out

template <std::ranges::input_range Range>
NoteValue range_value(const Range& range) {
  std::string text;
  size_t count = 0;
  for (const auto& element : range) {
    if (count > 0) text += ", ";
    if (count++ == kNotedElements) {
      text += "…";
      break;
    }
    text += note_value(element).text;
  }
  return {"[" + text + "]"};
}

struct FieldTexts {
  std::string& text;
  template <class... Fields>
  void operator()(Fields&... fields) const {
    ((text += (text.empty() ? "" : ", ") + note_value(fields).text), ...);
  }
  template <class Unknown, class... Fields>
  void versioned(std::string_view, Unknown&, Fields&... fields) const {
    (*this)(fields...);
  }
};

}  // namespace detail

template <class T>
NoteValue note_value(const T& value) {
  using namespace detail;
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return {std::string(std::string_view(value))};
  } else if constexpr (std::is_same_v<T, bool>) {
    return {value ? "true" : "false"};
  } else if constexpr (std::is_same_v<T, char>) {
    return {std::string(1, value)};
  } else if constexpr (std::is_arithmetic_v<T>) {
    return number_value(value);
  } else if constexpr (is_duration<T>) {
    return number_value(std::chrono::duration<double>(value).count());
  } else if constexpr (HasText<T>) {
    return {to_string(value)};
  } else if constexpr (is_optional<T>) {
    return value ? note_value(*value) : NoteValue{"none"};
  } else if constexpr (std::ranges::input_range<const T>) {
    return range_value(value);
  } else if constexpr (std::is_base_of_v<at::Tensor, T>) {
    return note_value(static_cast<const at::Tensor&>(value));
  } else if constexpr (Streamable<T> && !std::is_pointer_v<T>) {
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out << value;
    return {std::move(out).str()};
  } else if constexpr (std::is_enum_v<T>) {
    return number_value(static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (DescribesFields<T>) {
    std::string text;
    describe(const_cast<T&>(value), FieldTexts{text});
    return {"{" + text + "}"};
  } else {
    static_assert(can_be_noted<T>,
                  "a note's value needs an operator<< or a to_string, or fields that it describes "
                  "(a pointer differs from run to run: note what it points to)");
  }
}

}  // namespace rehearsal
