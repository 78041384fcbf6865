#pragma once

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <utility>

#include "core/values/value_io.h"

// LibTorch's own types. Included by value.h.
//
// Tensors of every number type arrive with their elements, sizes and requires_grad:
// - dense ones on the CPU. A view brings its own elements only. Strides keep their order, and a
//   tensor arrives contiguous exactly if it was; a gap between rows, however wide, becomes one
//   element wide. If elements overlap (an expanded tensor), each is sent, and it arrives
//   contiguous;
// - sparse ones (COO, coalesced or not; CSR, CSC, BSR, BSC);
// - quantised ones, by tensor or by channel, but for types below one byte.
//
// A tensor that means more than that is refused (bad_arguments): one whose dimensions have names, a
// dual tensor of forward-mode differentiation, a nested one. Not kept, because it is the sender's
// own or says nothing of the value:
// - what its autograd holds: gradient, hooks, name. Gradients come back through calls that are
//   recorded, and hooks run where they were registered;
// - its memory: that it is a view, or that two share theirs;
// - that it is lazy: a conjugate, a negative or a zero tensor arrives computed;
// - the memory format of a quantised tensor, which arrives contiguous;
// - that it was made in inference mode: it arrives as any other;
// - that it is a wrapped number, whose type counts less than that of others in an operation: it
//   arrives as a tensor without dimensions.
// (tests/reference/carried_by_tensors_test.cc has each of these lines.)
//
// IValues of these kinds are values: none, tensors, numbers, text, devices; tuples, and lists and
// dictionaries with their types. They are sent by value: what two hold in common is sent twice. The
// names of a named tuple's fields are not kept.
namespace rehearsal {

// The memory of LibTorch's containers, about (tests/core/values/decoded_size_test.cc measures it).
inline constexpr uint64_t kIValueListBytes = 64;
inline constexpr uint64_t kIValueDictBytes = 416;
inline constexpr uint64_t kIValueEntryBytes = 256;  // of a dictionary, in a table that grows

template <>
struct Value<at::Tensor> {
  static void write(ValueWriter& writer, const at::Tensor& tensor) { writer.tensor(tensor); }
  static at::Tensor read(ValueReader& reader) { return reader.tensor(); }
  static void sign(WireSignature& signature) { signature += "Tensor"; }
};

template <>
struct Value<c10::IValue> {
  static void write(ValueWriter& writer, const c10::IValue& value) { writer.ivalue(value); }
  static c10::IValue read(ValueReader& reader) { return reader.ivalue(); }
  static void sign(WireSignature& signature) { signature += "IValue"; }
};

// ---- containers of IValues -----------------------------------------------------

template <>
struct Value<c10::impl::GenericList> {
  static void write(ValueWriter& writer, const c10::impl::GenericList& list) {
    writer.ivalue(list);
  }
  static c10::impl::GenericList read(ValueReader& reader) {
    c10::IValue value = reader.ivalue();
    if (!value.isList()) throw BadValue("an IValue that is no list");
    return std::move(value).toList();
  }
  static void sign(WireSignature& signature) { signature += "IValue"; }
};

template <>
struct Value<c10::impl::GenericDict> {
  static void write(ValueWriter& writer, const c10::impl::GenericDict& dict) {
    writer.ivalue(dict);
  }
  static c10::impl::GenericDict read(ValueReader& reader) {
    c10::IValue value = reader.ivalue();
    if (!value.isGenericDict()) throw BadValue("an IValue that is no dictionary");
    return std::move(value).toGenericDict();
  }
  static void sign(WireSignature& signature) { signature += "IValue"; }
};

template <>
struct Value<c10::intrusive_ptr<c10::ivalue::Tuple>> {
  using Tuple = c10::intrusive_ptr<c10::ivalue::Tuple>;
  static void write(ValueWriter& writer, const Tuple& tuple) {
    if (!tuple) throw BadValue("a null tuple cannot be sent");
    writer.ivalue(tuple);
  }
  static Tuple read(ValueReader& reader) {
    c10::IValue value = reader.ivalue();
    if (!value.isTuple()) throw BadValue("an IValue that is no tuple");
    return std::move(value).toTuple();
  }
  static void sign(WireSignature& signature) { signature += "IValue"; }
};

// ---- containers of one type ----------------------------------------------------

template <Sendable T>
struct Value<c10::List<T>> {
  static void write(ValueWriter& writer, const c10::List<T>& values) {
    writer.count(values.size());
    for (size_t i = 0; i < values.size(); ++i) Value<T>::write(writer, values.get(i));
  }
  static c10::List<T> read(ValueReader& reader) {
    reader.hold(1, kIValueListBytes);
    c10::List<T> values;
    const uint64_t size = reader.element_count();
    reader.hold_block(size, sizeof(c10::IValue));
    values.reserve(size);
    for (uint64_t left = size; left > 0; --left) values.push_back(Value<T>::read(reader));
    return values;
  }
  static void sign(WireSignature& signature) {
    signature += '[';
    Value<T>::sign(signature);
    signature += ']';
  }
};

// In the order of insertion.
template <Sendable K, Sendable V>
struct Value<c10::Dict<K, V>> {
  static void write(ValueWriter& writer, const c10::Dict<K, V>& values) {
    writer.count(values.size());
    for (const auto& entry : values) {
      Value<K>::write(writer, entry.key());
      Value<V>::write(writer, entry.value());
    }
  }
  static c10::Dict<K, V> read(ValueReader& reader) {
    reader.hold(1, kIValueDictBytes);
    c10::Dict<K, V> values;
    const uint64_t size = reader.element_count();
    reader.hold(size, kIValueEntryBytes);
    for (uint64_t left = size; left > 0; --left) {
      K key = Value<K>::read(reader);
      if (!values.insert(std::move(key), Value<V>::read(reader)).second)
        throw BadValue("a dictionary with a key twice");
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

}  // namespace rehearsal
