#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "core/values/value_io.h"

// The containers of the standard library. Included by value.h. LibTorch includes these headers
// itself, but for <list>.
namespace rehearsal {

// ---- one or none --------------------------------------------------------------

namespace detail {

template <class Holder, class T>
struct MaybeValue {
  static void write(ValueWriter& writer, const Holder& value) {
    writer.count(value ? 1 : 0);
    if (value) Value<T>::write(writer, *value);
  }
  static void sign(WireSignature& signature) {
    signature += '?';
    Value<T>::sign(signature);
  }
};

}  // namespace detail

template <Sendable T>
struct Value<std::optional<T>> : detail::MaybeValue<std::optional<T>, T> {
  static std::optional<T> read(ValueReader& reader) {
    if (!reader.boolean()) return std::nullopt;
    return Value<T>::read(reader);
  }
};

// By value, or null. Not for a base of other types: only the base would be sent. There is no
// std::shared_ptr: a value cannot say who else holds it.
template <Sendable T>
requires(!std::is_polymorphic_v<T>) struct Value<std::unique_ptr<T>>
    : detail::MaybeValue<std::unique_ptr<T>, T> {
  static std::unique_ptr<T> read(ValueReader& reader) {
    if (!reader.boolean()) return nullptr;
    reader.hold_block(1, sizeof(T));
    return std::make_unique<T>(Value<T>::read(reader));
  }
};

// ---- sequences ----------------------------------------------------------------

namespace detail {

// The memory of containers, as the usual libraries have them: a block for all elements, or a node
// for each.
inline constexpr uint64_t kNodeBytes = 2 * sizeof(void*);      // of a list, beside the element
inline constexpr uint64_t kTreeNodeBytes = 4 * sizeof(void*);  // of a map or a set
inline constexpr uint64_t kHashNodeBytes = 4 * sizeof(void*);  // with what the table has for it
inline constexpr uint64_t kHashTableBytes = 16 * sizeof(void*);
inline constexpr uint64_t kDequeBytes = 640;  // has blocks before it has elements

template <class Sequence>
void hold_elements(ValueReader& reader, uint64_t count) {
  constexpr uint64_t bytes = sizeof(typename Sequence::value_type);
  if constexpr (requires(Sequence & values) { values.flip(); }) {
    reader.hold_block((count + 7) / 8, 1);  // bools
  } else if constexpr (requires(Sequence & values) { values.reserve(count); }) {
    reader.hold_block(count, bytes);
  } else if constexpr (requires(Sequence & values) { values.shrink_to_fit(); }) {
    reader.hold(1, kDequeBytes);
    constexpr uint64_t in_block = std::max<uint64_t>(1, 512 / bytes);
    reader.hold(count, bytes + (ValueReader::kBlockBytes + sizeof(void*)) / in_block);
  } else {
    reader.hold(count, bytes + kNodeBytes + ValueReader::kBlockBytes);
  }
}

template <class Table>
void hold_entries(ValueReader& reader, uint64_t count) {
  constexpr uint64_t bytes = sizeof(typename Table::value_type) + ValueReader::kBlockBytes;
  if constexpr (requires(Table & values) { values.bucket_count(); }) {
    if (count > 0) reader.hold(1, kHashTableBytes);
    reader.hold(count, bytes + kHashNodeBytes);
  } else {
    reader.hold(count, bytes + kTreeNodeBytes);
  }
}

template <class Sequence>
struct SequenceValue {
  using T = typename Sequence::value_type;
  static void write(ValueWriter& writer, const Sequence& values) {
    writer.count(values.size());
    for (const auto& value : values) Value<T>::write(writer, value);
  }
  static Sequence read(ValueReader& reader) {
    const uint64_t size = reader.element_count();
    Sequence values;
    hold_elements<Sequence>(reader, size);
    if constexpr (requires { values.reserve(size); }) values.reserve(size);
    for (uint64_t i = 0; i < size; ++i) values.push_back(Value<T>::read(reader));
    return values;
  }
  static void sign(WireSignature& signature) {
    signature += '[';
    Value<T>::sign(signature);
    signature += ']';
  }
};

}  // namespace detail

template <Sendable T, class Allocator>
struct Value<std::vector<T, Allocator>> : detail::SequenceValue<std::vector<T, Allocator>> {};

template <Sendable T, class Allocator>
struct Value<std::deque<T, Allocator>> : detail::SequenceValue<std::deque<T, Allocator>> {};

template <Sendable T, class Allocator>
struct Value<std::list<T, Allocator>> : detail::SequenceValue<std::list<T, Allocator>> {};

template <Sendable T, size_t size>
struct Value<std::array<T, size>> {
  static void write(ValueWriter& writer, const std::array<T, size>& values) {
    writer.count(size);
    for (const T& value : values) Value<T>::write(writer, value);
  }
  static std::array<T, size> read(ValueReader& reader) {
    if (reader.count() != size) throw BadValue("an array of another size");
    std::array<T, size> values{};
    for (T& value : values) value = Value<T>::read(reader);
    return values;
  }
  static void sign(WireSignature& signature) {
    signature += '[';
    Value<T>::sign(signature);
    signature += "*" + std::to_string(size) + "]";
  }
};

// ---- maps and sets ------------------------------------------------------------

namespace detail {

// The entries of a container without an order, in the order of their keys' bytes: equal containers
// are written as equal bytes. Throws BadValue for a key that holds tensors or references.
class EntriesInOrder {
 public:
  struct Entry {
    std::string key;  // as written
    const void* entry;
  };

  template <class Key>
  void add(const ValueWriter& outer, const Key& key, const void* entry) {
    Payload payload;
    ValueWriter writer(payload, outer);
    Value<Key>::write(writer, key);
    add(std::move(payload), entry);
  }
  [[nodiscard]] const std::vector<Entry>& in_order();

 private:
  void add(Payload&& key, const void* entry);
  std::vector<Entry> entries_;
};

template <class Map>
struct MapValue {
  using K = typename Map::key_type;
  using V = typename Map::mapped_type;
  static void write(ValueWriter& writer, const Map& values) {
    writer.count(values.size());
    for (const auto& [key, value] : values) {
      Value<K>::write(writer, key);
      Value<V>::write(writer, value);
    }
  }
  static Map read(ValueReader& reader) {
    Map values;
    const uint64_t size = reader.element_count();
    hold_entries<Map>(reader, size);
    for (uint64_t left = size; left > 0; --left) {
      K key = Value<K>::read(reader);
      if (!values.emplace(std::move(key), Value<V>::read(reader)).second)
        throw BadValue("a map with a key twice");
    }
    return values;
  }
  static void sign(WireSignature& signature) {
    signature += '{';
    Value<K>::sign(signature);
    signature += ':';
    Value<V>::sign(signature);
    signature += '}';
  }
};

template <class Set>
struct SetValue {
  using T = typename Set::key_type;
  static void write(ValueWriter& writer, const Set& values) {
    writer.count(values.size());
    for (const T& value : values) Value<T>::write(writer, value);
  }
  static Set read(ValueReader& reader) {
    Set values;
    const uint64_t size = reader.element_count();
    hold_entries<Set>(reader, size);
    for (uint64_t left = size; left > 0; --left)
      if (!values.insert(Value<T>::read(reader)).second)
        throw BadValue("a set with an element twice");
    return values;
  }
  static void sign(WireSignature& signature) {
    signature += '{';
    Value<T>::sign(signature);
    signature += '}';
  }
};

}  // namespace detail

template <Sendable K, Sendable V, class Compare, class Allocator>
struct Value<std::map<K, V, Compare, Allocator>>
    : detail::MapValue<std::map<K, V, Compare, Allocator>> {};

template <Sendable T, class Compare, class Allocator>
struct Value<std::set<T, Compare, Allocator>> : detail::SetValue<std::set<T, Compare, Allocator>> {
};

template <Sendable K, Sendable V, class Hash, class Equal, class Allocator>
struct Value<std::unordered_map<K, V, Hash, Equal, Allocator>>
    : detail::MapValue<std::unordered_map<K, V, Hash, Equal, Allocator>> {
  static void write(ValueWriter& writer,
                    const std::unordered_map<K, V, Hash, Equal, Allocator>& values) {
    detail::EntriesInOrder entries;
    for (const auto& [key, value] : values) entries.add(writer, key, &value);
    writer.count(values.size());
    for (const auto& [key, value] : entries.in_order()) {
      writer.written(key);
      Value<V>::write(writer, *static_cast<const V*>(value));
    }
  }
};

template <Sendable T, class Hash, class Equal, class Allocator>
struct Value<std::unordered_set<T, Hash, Equal, Allocator>>
    : detail::SetValue<std::unordered_set<T, Hash, Equal, Allocator>> {
  static void write(ValueWriter& writer,
                    const std::unordered_set<T, Hash, Equal, Allocator>& values) {
    detail::EntriesInOrder entries;
    for (const T& value : values) entries.add(writer, value, nullptr);
    writer.count(values.size());
    for (const auto& entry : entries.in_order()) writer.written(entry.key);
  }
};

// ---- several of different types -----------------------------------------------

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
  static void sign(WireSignature& signature) {
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
  static void sign(WireSignature& signature) {
    signature += '<';
    Value<A>::sign(signature);
    signature += ',';
    Value<B>::sign(signature);
    signature += '>';
  }
};

template <>
struct Value<std::monostate> {
  static void write(ValueWriter& writer, std::monostate) { writer.count(0); }
  static std::monostate read(ValueReader& reader) {
    if (reader.count() != 0) throw BadValue("not the empty alternative of a variant");
    return {};
  }
  static void sign(WireSignature& signature) { signature += "unit"; }
};

// By the index of its alternative.
template <Sendable... T>
struct Value<std::variant<T...>> {
  using Variant = std::variant<T...>;
  static void write(ValueWriter& writer, const Variant& value) {
    if (value.valueless_by_exception()) throw BadValue("a variant that lost its value");
    writer.count(value.index());
    std::visit([&](const auto& held) { Value<std::decay_t<decltype(held)>>::write(writer, held); },
               value);
  }
  static Variant read(ValueReader& reader) { return read(reader, std::index_sequence_for<T...>{}); }
  static void sign(WireSignature& signature) {
    signature += "one_of(";
    ((Value<T>::sign(signature), signature += ','), ...);
    signature += ')';
  }

 private:
  template <size_t... index>
  static Variant read(ValueReader& reader, std::index_sequence<index...>) {
    using Read = Variant (*)(ValueReader&);
    static constexpr Read reads[] = {[](ValueReader& from) {
      return Variant(std::in_place_index<index>, Value<T>::read(from));
    }...};
    const uint64_t given = reader.count();
    if (given >= sizeof...(T))
      throw BadValue("a variant without the alternative " + std::to_string(given));
    return reads[given](reader);
  }
};

}  // namespace rehearsal
