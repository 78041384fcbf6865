#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/rpc/payload.h"

// What can be sent. `Value<T>` says how a T becomes bytes, tensors and remote references, and back.
// A user's struct is a value if it describes its fields by a hidden friend:
//
//   struct Batch {
//     std::string text;
//     std::vector<int64_t> ids;
//     friend void describe(Batch& batch, auto&& fields) { fields(batch.text, batch.ids); }
//   };
//
// It must be default-constructible; reading fills its fields in the order given.
namespace rehearsal {

// Bytes do not fit the type they are read as. Becomes bad_arguments.
class BadValue : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// Appends values to a payload. Throws BadValue for a tensor that cannot be sent.
class ValueWriter {
 public:
  explicit ValueWriter(Payload& payload) : payload_(payload) {}

  void count(uint64_t number);   // LEB128
  void integer(int64_t number);  // zigzag
  void floating(double number);
  void text(std::string_view bytes);
  void tensor(const at::Tensor& tensor);
  void handle(std::shared_ptr<RRefHandle> handle);
  void ivalue(const c10::IValue& value);

  // Throws BadValue if there is more than one message can hold beside its tensors.
  void finish() const;

 private:
  void ivalue(const c10::IValue& value, int depth);
  Payload& payload_;
};

// Takes values from a payload, in order; checks every byte. Throws BadValue. Each element of a
// sequence takes at least one byte, so that a count is bounded by what is left.
class ValueReader {
 public:
  explicit ValueReader(Payload& payload) : payload_(payload) {}

  uint64_t count();
  uint64_t element_count();  // a count that the remaining bytes can hold
  int64_t integer();
  double floating();
  std::string text();
  at::Tensor tensor();
  std::shared_ptr<RRefHandle> handle();
  c10::IValue ivalue() { return ivalue(0); }

  // Throws unless all has been read.
  void finish() const;

 private:
  c10::IValue ivalue(int depth);
  std::string_view take(uint64_t bytes);

  Payload& payload_;
  size_t at_ = 0;
  size_t next_tensor_ = 0;
  size_t next_handle_ = 0;
};

template <class T>
struct Value;  // Undefined: this type cannot be sent.

// A count is believed only so far: an element may be much larger than its byte.
inline constexpr uint64_t kReservedElementsMax = 1024;

namespace detail {
struct AnyFields {
  template <class... Fields>
  void operator()(Fields&...) const {}
};
}  // namespace detail

template <class T>
concept Described = requires(T& value) {
  describe(value, detail::AnyFields{});
};

template <class T>
concept Sendable = requires(ValueWriter& writer, ValueReader& reader, const T& value,
                            std::string& signature) {
  Value<T>::write(writer, value);
  { Value<T>::read(reader) } -> std::same_as<T>;
  Value<T>::sign(signature);
};

template <>
struct Value<at::Tensor> {
  static void write(ValueWriter& writer, const at::Tensor& tensor) { writer.tensor(tensor); }
  static at::Tensor read(ValueReader& reader) { return reader.tensor(); }
  static void sign(std::string& signature) { signature += "Tensor"; }
};

template <>
struct Value<bool> {
  static void write(ValueWriter& writer, bool value) { writer.count(value ? 1 : 0); }
  static bool read(ValueReader& reader) {
    const uint64_t value = reader.count();
    if (value > 1) throw BadValue("a bool that is neither true nor false");
    return value == 1;
  }
  static void sign(std::string& signature) { signature += "bool"; }
};

// All integers are written alike, so that a constructor's arguments fit whatever width it takes.
template <std::integral T>
struct Value<T> {
  static void write(ValueWriter& writer, T value) {
    const auto wide = static_cast<int64_t>(value);
    if (std::is_unsigned_v<T> && wide < 0) throw BadValue("an integer above 2^63 - 1");
    writer.integer(wide);
  }
  static T read(ValueReader& reader) {
    const int64_t wide = reader.integer();
    const auto value = static_cast<T>(wide);
    const bool fits = static_cast<int64_t>(value) == wide && (wide >= 0 || !std::is_unsigned_v<T>);
    if (!fits) throw BadValue("an integer out of its type's range");
    return value;
  }
  static void sign(std::string& signature) {
    signature += (std::is_unsigned_v<T> ? "uint" : "int") + std::to_string(sizeof(T) * 8);
  }
};

template <std::floating_point T>
struct Value<T> {
  static void write(ValueWriter& writer, T value) { writer.floating(static_cast<double>(value)); }
  static T read(ValueReader& reader) { return static_cast<T>(reader.floating()); }
  static void sign(std::string& signature) { signature += "float" + std::to_string(sizeof(T) * 8); }
};

template <class T>
requires std::is_enum_v<T>
struct Value<T> {
  using Number = std::underlying_type_t<T>;
  static void write(ValueWriter& writer, T value) {
    Value<Number>::write(writer, static_cast<Number>(value));
  }
  static T read(ValueReader& reader) { return static_cast<T>(Value<Number>::read(reader)); }
  static void sign(std::string& signature) { Value<Number>::sign(signature); }
};

// Text or bytes.
template <>
struct Value<std::string> {
  static void write(ValueWriter& writer, const std::string& text) { writer.text(text); }
  static std::string read(ValueReader& reader) { return reader.text(); }
  static void sign(std::string& signature) { signature += "bytes"; }
};

template <>
struct Value<Unit> {
  static void write(ValueWriter& writer, Unit) { writer.count(0); }
  static Unit read(ValueReader& reader) {
    if (reader.count() != 0) throw BadValue("not the unit value");
    return {};
  }
  static void sign(std::string& signature) { signature += "unit"; }
};

template <>
struct Value<c10::IValue> {
  static void write(ValueWriter& writer, const c10::IValue& value) { writer.ivalue(value); }
  static c10::IValue read(ValueReader& reader) { return reader.ivalue(); }
  static void sign(std::string& signature) { signature += "IValue"; }
};

template <Sendable T>
struct Value<std::optional<T>> {
  static void write(ValueWriter& writer, const std::optional<T>& value) {
    writer.count(value ? 1 : 0);
    if (value) Value<T>::write(writer, *value);
  }
  static std::optional<T> read(ValueReader& reader) {
    if (!Value<bool>::read(reader)) return std::nullopt;
    return Value<T>::read(reader);
  }
  static void sign(std::string& signature) {
    signature += '?';
    Value<T>::sign(signature);
  }
};

template <Sendable T, class Allocator>
struct Value<std::vector<T, Allocator>> {
  static void write(ValueWriter& writer, const std::vector<T, Allocator>& values) {
    writer.count(values.size());
    for (const auto& value : values) Value<T>::write(writer, value);
  }
  static std::vector<T, Allocator> read(ValueReader& reader) {
    const uint64_t size = reader.element_count();
    std::vector<T, Allocator> values;
    values.reserve(std::min<uint64_t>(size, kReservedElementsMax));
    for (uint64_t i = 0; i < size; ++i) values.push_back(Value<T>::read(reader));
    return values;
  }
  static void sign(std::string& signature) {
    signature += '[';
    Value<T>::sign(signature);
    signature += ']';
  }
};

template <Sendable K, Sendable V>
struct Value<std::map<K, V>> {
  static void write(ValueWriter& writer, const std::map<K, V>& values) {
    writer.count(values.size());
    for (const auto& [key, value] : values) {
      Value<K>::write(writer, key);
      Value<V>::write(writer, value);
    }
  }
  static std::map<K, V> read(ValueReader& reader) {
    std::map<K, V> values;
    for (uint64_t left = reader.element_count(); left > 0; --left) {
      K key = Value<K>::read(reader);
      if (!values.emplace(std::move(key), Value<V>::read(reader)).second)
        throw BadValue("a map with a key twice");
    }
    return values;
  }
  static void sign(std::string& signature) {
    signature += "{";
    Value<K>::sign(signature);
    signature += ":";
    Value<V>::sign(signature);
    signature += "}";
  }
};

template <Sendable... T>
struct Value<std::tuple<T...>> {
  static void write(ValueWriter& writer, const std::tuple<T...>& values) {
    writer.count(sizeof...(T));
    std::apply([&](const T&... value) { (Value<T>::write(writer, value), ...); }, values);
  }
  static std::tuple<T...> read(ValueReader& reader) {
    if (reader.count() != sizeof...(T)) throw BadValue("a tuple of another size");
    return std::tuple<T...>{Value<T>::read(reader)...};
  }
  static void sign(std::string& signature) {
    signature += '(';
    ((Value<T>::sign(signature), signature += ','), ...);
    signature += ')';
  }
};

template <Sendable A, Sendable B>
struct Value<std::pair<A, B>> {
  static void write(ValueWriter& writer, const std::pair<A, B>& values) {
    Value<A>::write(writer, values.first);
    Value<B>::write(writer, values.second);
  }
  static std::pair<A, B> read(ValueReader& reader) {
    A first = Value<A>::read(reader);
    return {std::move(first), Value<B>::read(reader)};
  }
  static void sign(std::string& signature) {
    signature += "<";
    Value<A>::sign(signature);
    signature += ",";
    Value<B>::sign(signature);
    signature += ">";
  }
};

template <Described T>
struct Value<T> {
  static void write(ValueWriter& writer, const T& value) {
    // describe takes its object as it is filled; writing only reads the fields.
    describe(const_cast<T&>(value), [&](auto&... fields) {
      writer.count(sizeof...(fields));
      (Value<std::decay_t<decltype(fields)>>::write(writer, fields), ...);
    });
  }
  static T read(ValueReader& reader) {
    T value{};
    describe(value, [&](auto&... fields) {
      if (reader.count() != sizeof...(fields)) throw BadValue("a struct with other fields");
      ((fields = Value<std::decay_t<decltype(fields)>>::read(reader)), ...);
    });
    return value;
  }
  static void sign(std::string& signature) {
    T value{};
    signature += "struct(";
    describe(value, [&](auto&... fields) {
      ((Value<std::decay_t<decltype(fields)>>::sign(signature), signature += ','), ...);
    });
    signature += ')';
  }
};

}  // namespace rehearsal
