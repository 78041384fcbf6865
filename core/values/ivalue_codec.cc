// IValues: a tag, then what it says. Lists and dictionaries of other than any values are written
// with their types.
#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/values/value_torch.h"

namespace rehearsal {
namespace {

enum class Tag : uint8_t {
  none,
  tensor,
  integer,
  floating,
  boolean,
  text,
  tuple,
  list,
  int_list,
  floating_list,
  bool_list,
  tensor_list,
  dict,
  scalar_complex,
  typed_list,
  typed_dict,
  unsigned_integer,  // above 2^63 - 1
  device,
  end_of_tags
};

enum class TypeTag : uint8_t {
  any,
  none,
  tensor,
  integer,
  floating,
  complex,
  boolean,
  number,
  text,
  device,
  optional,
  list,
  dict,
  tuple,
  end_of_tags
};

// Types that have no parts.
struct PlainType {
  TypeTag tag;
  c10::TypePtr type;
};

const std::vector<PlainType>& plain_types() {
  static const std::vector<PlainType> types = {
      {TypeTag::any, c10::AnyType::get()},        {TypeTag::none, c10::NoneType::get()},
      {TypeTag::tensor, c10::TensorType::get()},  {TypeTag::integer, c10::IntType::get()},
      {TypeTag::floating, c10::FloatType::get()}, {TypeTag::complex, c10::ComplexType::get()},
      {TypeTag::boolean, c10::BoolType::get()},   {TypeTag::number, c10::NumberType::get()},
      {TypeTag::text, c10::StringType::get()},    {TypeTag::device, c10::DeviceObjType::get()},
  };
  return types;
}

// Whether a value is one of a type that can be sent.
bool is_of(const c10::IValue& value, const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::AnyType:
      return true;
    case c10::TypeKind::NoneType:
      return value.isNone();
    case c10::TypeKind::TensorType:
      return value.isTensor();
    case c10::TypeKind::IntType:
      return value.isInt();
    case c10::TypeKind::FloatType:
      return value.isDouble();
    case c10::TypeKind::ComplexType:
      return value.isComplexDouble();
    case c10::TypeKind::BoolType:
      return value.isBool();
    case c10::TypeKind::NumberType:
      return value.isScalar();
    case c10::TypeKind::StringType:
      return value.isString();
    case c10::TypeKind::DeviceObjType:
      return value.isDevice();
    case c10::TypeKind::OptionalType:
      return value.isNone() || is_of(value, *type.expectRef<c10::OptionalType>().getElementType());
    case c10::TypeKind::ListType:
      return value.isList() &&
             *value.toList().elementType() == *type.expectRef<c10::ListType>().getElementType();
    case c10::TypeKind::DictType: {
      const auto& dict = type.expectRef<c10::DictType>();
      return value.isGenericDict() && *value.toGenericDict().keyType() == *dict.getKeyType() &&
             *value.toGenericDict().valueType() == *dict.getValueType();
    }
    case c10::TypeKind::TupleType: {
      if (!value.isTuple()) return false;
      const auto& elements = value.toTupleRef().elements();
      const auto types = type.expectRef<c10::TupleType>().elements();
      if (elements.size() != types.size()) return false;
      for (size_t i = 0; i < types.size(); ++i)
        if (!is_of(elements[i], *types[i])) return false;
      return true;
    }
    default:
      return false;
  }
}

// Tensors as keys would be told apart by their addresses.
bool can_be_key(const c10::IValue& value) {
  return value.isInt() || value.isString() || value.isDouble() || value.isBool() ||
         value.isComplexDouble() || value.isDevice();
}
// The memory of types and of IValues without elements, about.
constexpr uint64_t kTypeBytes = 192;
constexpr uint64_t kTupleTypeBytes = 256;
constexpr uint64_t kTupleBytes = 96;
constexpr uint64_t kTextBytes = 64;

constexpr const char* kBadKey = "a dictionary key that is no number, text or device";

c10::Device device_of(const std::string& name) {
  try {
    return c10::Device(name);
  } catch (const c10::Error&) {
    throw BadValue("a device of no known name");
  }
}

}  // namespace

// ---- writing ------------------------------------------------------------------

void ValueWriter::type(const c10::Type& type) {
  const Nesting nesting(*this);
  const auto tag = [this](TypeTag tag) { count(static_cast<uint64_t>(tag)); };
  for (const PlainType& plain : plain_types())
    if (plain.type->kind() == type.kind()) return tag(plain.tag);
  switch (type.kind()) {
    case c10::TypeKind::OptionalType:
      tag(TypeTag::optional);
      return this->type(*type.expectRef<c10::OptionalType>().getElementType());
    case c10::TypeKind::ListType:
      tag(TypeTag::list);
      return this->type(*type.expectRef<c10::ListType>().getElementType());
    case c10::TypeKind::DictType:
      tag(TypeTag::dict);
      this->type(*type.expectRef<c10::DictType>().getKeyType());
      return this->type(*type.expectRef<c10::DictType>().getValueType());
    case c10::TypeKind::TupleType: {
      const auto elements = type.expectRef<c10::TupleType>().elements();
      tag(TypeTag::tuple);
      count(elements.size());
      for (const c10::TypePtr& element : elements) this->type(*element);
      return;
    }
    default:
      throw BadValue("a list or dictionary of " + type.str() + " cannot be sent");
  }
}

void ValueWriter::ivalue_list(const c10::IValue& value) {
  const auto tag = [this](Tag tag) { count(static_cast<uint64_t>(tag)); };
  const auto elements = [this](const auto& list, auto write) {
    count(list.size());
    for (const auto& element : list) write(element);
  };
  if (value.isIntList()) {
    tag(Tag::int_list);
    elements(value.toIntVector(), [&](int64_t element) { integer(element); });
  } else if (value.isDoubleList()) {
    tag(Tag::floating_list);
    elements(value.toDoubleVector(), [&](double element) { floating(element); });
  } else if (value.isBoolList()) {
    tag(Tag::bool_list);
    elements(value.toBoolList().vec(), [&](bool element) { count(element ? 1 : 0); });
  } else if (value.isTensorList()) {
    tag(Tag::tensor_list);
    elements(value.toTensorVector(), [&](const at::Tensor& element) { tensor(element); });
  } else {
    const c10::TypePtr element_type = value.toList().elementType();
    if (element_type->kind() == c10::TypeKind::AnyType) {
      tag(Tag::list);
    } else {
      tag(Tag::typed_list);
      type(*element_type);
    }
    elements(value.toListRef(), [&](const c10::IValue& element) { ivalue(element); });
  }
}

void ValueWriter::ivalue_dict(const c10::IValue& value) {
  const c10::impl::GenericDict dict = value.toGenericDict();
  const bool of_any = dict.keyType()->kind() == c10::TypeKind::AnyType &&
                      dict.valueType()->kind() == c10::TypeKind::AnyType;
  count(static_cast<uint64_t>(of_any ? Tag::dict : Tag::typed_dict));
  if (!of_any) {
    type(*dict.keyType());
    type(*dict.valueType());
  }
  count(dict.size());
  for (const auto& entry : dict) {  // Insertion order.
    if (!can_be_key(entry.key())) throw BadValue(kBadKey);
    ivalue(entry.key());
    ivalue(entry.value());
  }
}

void ValueWriter::ivalue(const c10::IValue& value) {
  const Nesting nesting(*this);
  const auto tag = [this](Tag tag) { count(static_cast<uint64_t>(tag)); };
  if (value.isNone()) {
    tag(Tag::none);
  } else if (value.isTensor()) {
    tag(Tag::tensor);
    tensor(value.toTensor());
  } else if (value.isInt()) {
    tag(Tag::integer);
    integer(value.toInt());
  } else if (value.isUnsigned()) {
    tag(Tag::unsigned_integer);
    unsigned_integer(value.toUInt());
  } else if (value.isDouble()) {
    tag(Tag::floating);
    floating(value.toDouble());
  } else if (value.isComplexDouble()) {
    tag(Tag::scalar_complex);
    floating(value.toComplexDouble().real());
    floating(value.toComplexDouble().imag());
  } else if (value.isBool()) {
    tag(Tag::boolean);
    count(value.toBool() ? 1 : 0);
  } else if (value.isString()) {
    tag(Tag::text);
    text(value.toStringRef());
  } else if (value.isDevice()) {
    tag(Tag::device);
    text(value.toDevice().str());
  } else if (value.isTuple()) {
    const auto& elements = value.toTupleRef().elements();
    tag(Tag::tuple);
    count(elements.size());
    for (const c10::IValue& element : elements) ivalue(element);
  } else if (value.isList()) {
    ivalue_list(value);
  } else if (value.isGenericDict()) {
    ivalue_dict(value);
  } else {
    throw BadValue("an IValue of kind " + value.tagKind() + " cannot be sent");
  }
}

// ---- reading ------------------------------------------------------------------

c10::TypePtr ValueReader::type() try {
  const Nesting nesting(*this);
  const auto tag = static_cast<TypeTag>(count());
  for (const PlainType& plain : plain_types())
    if (plain.tag == tag) return plain.type;
  hold(1, tag == TypeTag::tuple ? kTupleTypeBytes : kTypeBytes);
  switch (tag) {
    case TypeTag::optional:
      return c10::OptionalType::create(type());
    case TypeTag::list:
      return c10::ListType::create(type());
    case TypeTag::dict: {
      c10::TypePtr key = type();
      const c10::TypeKind kind = key->kind();
      const bool can_be = kind == c10::TypeKind::AnyType || kind == c10::TypeKind::IntType ||
                          kind == c10::TypeKind::BoolType || kind == c10::TypeKind::FloatType ||
                          kind == c10::TypeKind::ComplexType || kind == c10::TypeKind::StringType ||
                          kind == c10::TypeKind::DeviceObjType;
      if (!can_be) throw BadValue(kBadKey);
      return c10::DictType::create(std::move(key), type());
    }
    case TypeTag::tuple: {
      std::vector<c10::TypePtr> elements;
      const uint64_t size = element_count();
      hold_block(size, sizeof(c10::TypePtr));
      elements.reserve(size);
      for (uint64_t left = size; left > 0; --left) elements.push_back(type());
      return c10::TupleType::create(std::move(elements));
    }
    default:
      throw BadValue("an unknown type of an IValue");
  }
} catch (const c10::Error&) {
  throw BadValue("a type that an IValue cannot have");  // An optional of nothing but none.
}

c10::IValue ValueReader::ivalue_list(c10::TypePtr element_type) {
  hold(1, kIValueListBytes);
  c10::impl::GenericList list(element_type);
  const uint64_t size = element_count();
  hold_block(size, sizeof(c10::IValue));
  list.reserve(size);
  for (uint64_t left = size; left > 0; --left) {
    c10::IValue element = ivalue();
    if (!is_of(element, *element_type))
      throw BadValue("a list of " + element_type->str() + " with another element");
    list.push_back(std::move(element));
  }
  return list;
}

c10::IValue ValueReader::ivalue_dict(c10::TypePtr key_type, c10::TypePtr value_type) {
  hold(1, kIValueDictBytes);
  c10::impl::GenericDict dict(key_type, value_type);
  const uint64_t size = element_count();
  hold(size, kIValueEntryBytes);
  for (uint64_t left = size; left > 0; --left) {
    c10::IValue key = ivalue();
    if (!can_be_key(key)) throw BadValue(kBadKey);
    c10::IValue value = ivalue();
    if (!is_of(key, *key_type) || !is_of(value, *value_type))
      throw BadValue("a dictionary of " + key_type->str() + " and " + value_type->str() +
                     " with another entry");
    if (!dict.insert(std::move(key), std::move(value)).second)
      throw BadValue("a dictionary with a key twice");
  }
  return dict;
}

c10::IValue ValueReader::ivalue() {
  const Nesting nesting(*this);
  const auto fill = [this](auto list, auto read) {
    hold(1, kIValueListBytes);
    const uint64_t size = element_count();
    hold_block(size, sizeof(c10::IValue));
    list.reserve(size);
    for (uint64_t left = size; left > 0; --left) list.push_back(read());
    return c10::IValue(std::move(list));
  };
  switch (static_cast<Tag>(count())) {
    case Tag::none:
      return {};
    case Tag::tensor:
      return tensor();
    case Tag::integer:
      return integer();
    case Tag::unsigned_integer:
      return c10::IValue(unsigned_integer());
    case Tag::floating:
      return floating();
    case Tag::scalar_complex: {
      const double first = floating();
      return c10::complex<double>(first, floating());
    }
    case Tag::boolean:
      return boolean();
    case Tag::text:
      hold(1, kTextBytes);
      return text();
    case Tag::device:
      return device_of(text());
    case Tag::tuple: {
      hold(1, kTupleBytes);
      std::vector<c10::IValue> elements;
      const uint64_t size = element_count();
      hold_block(size, sizeof(c10::IValue));
      elements.reserve(size);
      for (uint64_t left = size; left > 0; --left) elements.push_back(ivalue());
      return c10::ivalue::Tuple::create(std::move(elements));
    }
    case Tag::int_list:
      return fill(c10::List<int64_t>(), [&] { return integer(); });
    case Tag::floating_list:
      return fill(c10::List<double>(), [&] { return floating(); });
    case Tag::bool_list:
      return fill(c10::List<bool>(), [&] { return boolean(); });
    case Tag::tensor_list:
      return fill(c10::List<at::Tensor>(), [&] { return tensor(); });
    case Tag::list:
      return ivalue_list(c10::AnyType::get());
    case Tag::typed_list:
      return ivalue_list(type());
    case Tag::dict:
      return ivalue_dict(c10::AnyType::get(), c10::AnyType::get());
    case Tag::typed_dict: {
      c10::TypePtr key_type = type();
      return ivalue_dict(std::move(key_type), type());
    }
    case Tag::end_of_tags:
      break;
  }
  throw BadValue("an unknown kind of IValue");
}

}  // namespace rehearsal
