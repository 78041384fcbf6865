#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <type_traits>

#include "core/values/value_io.h"

// Users' structs. Included by value.h, which says how a struct describes its fields.
//
// All workers of a group run one program, so the fields of a struct need no version. One that may
// meet an older or a newer program says so:
//
//   struct Settings {
//     double rate = 0.1;
//     std::string schedule = "flat";  // since the second version
//     UnknownFields unknown;
//     friend void describe(Settings& settings, auto&& fields) {
//       fields.versioned("Settings", settings.unknown, settings.rate, settings.schedule);
//     }
//   };
//
// Versions differ in how many fields they have: a new one adds fields at the end, and changes no
// type of those before. A field that an older program does not send keeps its default. The fields
// that a newer one sends beyond the known ones are kept in the UnknownFields, tensors and
// references included, and sent on with the struct, so that it comes back to a newer program whole;
// with `kRefuseUnknownFields` in their place, such a value is refused (bad_arguments). References
// that are kept count as held. Only the struct's name is part of a function's signature, so
// programs with different versions of it fit together. Each field costs 3 bytes.
namespace rehearsal {

struct RefuseUnknownFields {};
inline constexpr RefuseUnknownFields kRefuseUnknownFields;

namespace detail {

inline UnknownFields* kept(UnknownFields& unknown) { return &unknown; }
inline UnknownFields* kept(RefuseUnknownFields) { return nullptr; }

// A field that `describe` names.
template <class T>
struct CheckedField : CheckedValue<T> {
  static_assert(!std::is_const_v<T>,
                "describe takes its struct by reference, not by const reference: reading fills it");
};

template <class T>
FieldAccess access(T& field) {
  static_assert(CheckedField<T>::holds);
  return {
      std::addressof(field),
      [](ValueWriter& writer, const void* value) {
        Value<T>::write(writer, *static_cast<const T*>(value));
      },
      [](ValueReader& reader, void* value) { *static_cast<T*>(value) = Value<T>::read(reader); }};
}

// The `fields` that `describe` is given.
struct AnyFields {
  template <class... Fields>
  void operator()(Fields&...) const {}
  template <class Unknown, class... Fields>
  void versioned(std::string_view, Unknown&, Fields&...) const {}
};

struct WriteFields {
  ValueWriter& writer;
  template <class... Fields>
  void operator()(Fields&... fields) const {
    static_assert((CheckedField<Fields>::holds && ...));
    writer.count(sizeof...(fields));
    (Value<Fields>::write(writer, fields), ...);
  }
  template <class Unknown, class... Fields>
  void versioned(std::string_view, Unknown& unknown, Fields&... fields) const {
    const std::array<FieldAccess, sizeof...(fields)> all{access(fields)...};
    writer.versioned(all, kept(unknown));
  }
};

struct ReadFields {
  ValueReader& reader;
  template <class... Fields>
  void operator()(Fields&... fields) const {
    if (reader.count() != sizeof...(fields)) throw BadValue("a struct with other fields");
    ((fields = Value<Fields>::read(reader)), ...);
  }
  template <class Unknown, class... Fields>
  void versioned(std::string_view name, Unknown& unknown, Fields&... fields) const {
    const std::array<FieldAccess, sizeof...(fields)> all{access(fields)...};
    reader.versioned(name, all, kept(unknown));
  }
};

struct SignFields {
  WireSignature& signature;
  template <class... Fields>
  void operator()(Fields&...) const {
    ((Value<Fields>::sign(signature), signature += ','), ...);
  }
  template <class Unknown, class... Fields>
  void versioned(std::string_view name, Unknown&, Fields&...) const {
    signature += "versioned ";
    signature += name;
  }
};

}  // namespace detail

template <class T>
concept Described = requires(T& value) {
  describe(value, detail::AnyFields{});
};

template <Described T>
struct Value<T> {
  static void write(ValueWriter& writer, const T& value) {
    const Nesting nesting(writer);
    // describe takes its object as it is filled; writing only reads the fields.
    describe(const_cast<T&>(value), detail::WriteFields{writer});
  }
  static T read(ValueReader& reader) {
    static_assert(std::is_default_constructible_v<T>,
                  "a struct that describes its fields has a constructor without arguments: reading "
                  "makes one and fills its fields");
    const Nesting nesting(reader);
    T value = T();
    describe(value, detail::ReadFields{reader});
    return value;
  }
  static void sign(WireSignature& signature) {
    if (!signature.begin_struct(typeid(T))) return;
    T value = T();
    describe(value, detail::SignFields{signature});
    signature.end_struct();
  }
};

}  // namespace rehearsal
