#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/values/value.h"
#include "tests/core/values/value_round_trip.h"

namespace rehearsal {
namespace {

c10::IValue round_trip(const c10::IValue& value) {
  Payload payload;
  ValueWriter writer(payload);
  writer.ivalue(value);
  ValueReader reader(payload);
  c10::IValue back = reader.ivalue();
  reader.finish();
  return back;
}

void expect_same(const c10::IValue& value) {
  const c10::IValue back = round_trip(value);
  EXPECT_EQ(back.tagKind(), value.tagKind());
  EXPECT_EQ(back, value);
}

TEST(IValueTest, SingleValuesComeBack) {
  expect_same({});
  expect_same(int64_t{-5});
  expect_same(2.5);
  expect_same(true);
  expect_same(std::string("text"));
  expect_same(c10::complex<double>(1.5, -2.5));
  expect_same(c10::Device("cpu"));
  expect_same(c10::Device("cuda:3"));
  expect_same(c10::IValue(uint64_t{1} << 63));
  EXPECT_EQ(round_trip(c10::IValue(~uint64_t{0})).toUInt(), ~uint64_t{0});
}

TEST(IValueTest, TensorsComeBackAsTheyAreUndefinedOnesToo) {
  const at::Tensor tensor = at::ones({2});
  EXPECT_TRUE(round_trip(tensor).toTensor().is_same(tensor));
  const c10::IValue undefined = round_trip(at::Tensor());
  ASSERT_TRUE(undefined.isTensor());
  EXPECT_FALSE(undefined.toTensor().defined());
}

TEST(IValueTest, ListsKeepTheirElementsAndTheirKind) {
  expect_same(c10::List<int64_t>({1, -2, 3}));
  expect_same(c10::List<double>({1.5, -2.5}));
  expect_same(c10::List<bool>({true, false}));
  EXPECT_TRUE(round_trip(c10::List<int64_t>()).isIntList());
  const c10::IValue tensors = round_trip(c10::List<at::Tensor>({at::ones(1), at::zeros(2)}));
  ASSERT_TRUE(tensors.isTensorList());
  EXPECT_EQ(tensors.toTensorVector().size(), 2u);
  c10::impl::GenericList mixed(c10::AnyType::get());
  mixed.push_back(int64_t{1});
  mixed.push_back(std::string("two"));
  expect_same(mixed);
}

TEST(IValueTest, TuplesAndDictionariesNest) {
  c10::impl::GenericDict dict(c10::AnyType::get(), c10::AnyType::get());
  dict.insert(std::string("b"), int64_t{1});
  dict.insert(std::string("a"), c10::ivalue::Tuple::create({c10::IValue(), 2.5}));
  const c10::IValue tuple = c10::ivalue::Tuple::create({dict, c10::ivalue::Tuple::create({})});
  const c10::IValue back = round_trip(tuple);
  ASSERT_TRUE(back.isTuple());
  const c10::impl::GenericDict same = back.toTupleRef().elements()[0].toGenericDict();
  ASSERT_EQ(same.size(), 2u);
  EXPECT_EQ(same.begin()->key().toStringRef(), "b");  // The order of insertion is kept.
  EXPECT_EQ(same.at(std::string("a")).toTupleRef().elements()[1].toDouble(), 2.5);
  EXPECT_EQ(back.toTupleRef().elements()[1].toTupleRef().elements().size(), 0u);
}

template <class T>
c10::impl::GenericList list_of(const c10::TypePtr& type, const std::vector<T>& values) {
  c10::impl::GenericList list(type);
  for (const T& value : values) list.push_back(value);
  return list;
}

TEST(IValueTest, ListsAndDictionariesKeepTheirTypes) {
  c10::List<c10::List<int64_t>> nested;
  nested.push_back(c10::List<int64_t>({1, 2}));
  nested.push_back(c10::List<int64_t>());
  c10::Dict<std::string, std::vector<at::Tensor>> tensors;
  tensors.insert("one", std::vector<at::Tensor>{at::ones(1)});
  c10::Dict<int64_t, c10::optional<double>> maybe;
  maybe.insert(3, std::nullopt);
  maybe.insert(4, 0.5);
  c10::impl::GenericList tuples(
      c10::TupleType::create({c10::IntType::get(), c10::StringType::get()}));
  tuples.push_back(c10::ivalue::Tuple::create({int64_t{1}, std::string("a")}));
  for (const c10::IValue& value :
       {c10::IValue(c10::List<std::string>({"a", "b"})), c10::IValue(nested), c10::IValue(tensors),
        c10::IValue(maybe), c10::IValue(tuples),
        c10::IValue(c10::List<c10::complex<double>>({c10::complex<double>(1, 2)})),
        c10::IValue(c10::List<std::optional<at::Tensor>>({std::nullopt, at::ones(1)})),
        c10::IValue(list_of<c10::IValue>(c10::NumberType::get(), {1, 2.5})),
        c10::IValue(list_of<c10::IValue>(c10::DeviceObjType::get(), {c10::Device("cpu")})),
        c10::IValue(c10::Dict<std::string, c10::Dict<bool, std::string>>())}) {
    const c10::IValue back = round_trip(value);
    EXPECT_EQ(back.type()->str(), value.type()->str());
    Payload first = written(value);
    Payload second = written(back);
    EXPECT_EQ(first.values, second.values);
  }
}

TEST(IValueTest, TypedContainersOfLibTorchAreValues) {
  const auto numbers = read<c10::List<int64_t>>(written(c10::List<int64_t>({1, -2})));
  EXPECT_EQ(numbers.vec(), (std::vector<int64_t>{1, -2}));
  c10::Dict<std::string, at::Tensor> dict;
  dict.insert("b", at::ones(1));
  dict.insert("a", at::ones(2));
  const auto back = read<c10::Dict<std::string, at::Tensor>>(written(dict));
  EXPECT_EQ(back.begin()->key(), "b");  // The order of insertion is kept.
  EXPECT_EQ(back.at("a").numel(), 2);
  EXPECT_EQ(signature_of<c10::List<std::string>>(), "[bytes]");
  EXPECT_EQ((signature_of<c10::Dict<int64_t, bool>>()), "{int64:bool}");
  EXPECT_EQ((refusal<c10::Dict<bool, bool>>("\x02\x01\x01\x01\x01")),
            "a dictionary with a key twice");

  const auto generic = list_of<c10::IValue>(c10::NumberType::get(), {1, 2.5});
  const auto list = read<c10::impl::GenericList>(written(generic));
  EXPECT_EQ(*list.elementType(), *c10::NumberType::get());
  EXPECT_EQ(refusal<c10::impl::GenericList>(written(c10::IValue(5))), "an IValue that is no list");
  EXPECT_EQ(refusal<c10::impl::GenericDict>(written(generic)), "an IValue that is no dictionary");
  using Tuple = c10::intrusive_ptr<c10::ivalue::Tuple>;
  const Tuple tuple = c10::ivalue::Tuple::create({c10::IValue(), 2.5});
  EXPECT_EQ(read<Tuple>(written(tuple))->elements().size(), 2u);
  EXPECT_EQ(refusal<Tuple>(written(generic)), "an IValue that is no tuple");
  EXPECT_EQ(refusal_to_write(Tuple()), "a null tuple cannot be sent");
}

TEST(IValueTest, WhatIsNoValueIsRefused) {
  EXPECT_EQ(
      refusal_to_write(c10::IValue(c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get()))),
      "an IValue of kind Future cannot be sent");
  const c10::impl::GenericList futures(c10::FutureType::create(c10::IntType::get()));
  EXPECT_EQ(refusal_to_write(c10::IValue(futures)),
            "a list or dictionary of Future(int) cannot be sent");
  c10::impl::GenericDict by_tensor(c10::TensorType::get(), c10::AnyType::get());
  by_tensor.insert(at::ones(1), 1);
  EXPECT_NE(refusal_to_write(c10::IValue(by_tensor)), "accepted");
}

TEST(IValueTest, ElementsOfAnotherTypeThanTheirListAreRefused) {
  // Typed lists and dictionaries whose bytes hold something else: 14 is a typed list, 15 a typed
  // dictionary; of types, 3 is an integer, 6 a bool, 8 a text, 10 an optional, 11 a list.
  const auto refused = [](const std::string& bytes) { return refusal<c10::IValue>(bytes); };
  EXPECT_EQ(refused("\x0e\x03\x01\x04\x01"), "a list of int with another element");
  EXPECT_EQ(refused("\x0e\x0a\x03\x01\x04\x01"), "a list of int? with another element");
  EXPECT_EQ(refused(std::string("\x0e\x0b\x03\x01\x0a\x00", 6)),
            "a list of int[] with another element");
  EXPECT_EQ(refused(std::string("\x0e\x0b\x03\x01\x08\x00", 6)), "accepted");
  EXPECT_EQ(refused("\x0f\x03\x08\x01\x02\x02\x02\x02"),
            "a dictionary of int and str with another entry");
  EXPECT_EQ(refused("\x0c\x02\x02\x02\x02\x02\x02\x02\x02\x02"), "a dictionary with a key twice");
  EXPECT_EQ(refused(std::string("\x0f\x02\x08\x01\x01\x00", 6)), "fewer tensors than named");
  EXPECT_EQ(refused("\x0e\x1f"), "an unknown type of an IValue");
  EXPECT_EQ(refused("\x0e\x0a\x01"), "a type that an IValue cannot have");
  EXPECT_EQ(refused("\x0e\x0c\x02"), "a dictionary key that is no number, text or device");
  EXPECT_EQ(refused("\x11\x03?!x"), "a device of no known name");
  EXPECT_EQ(refused("\x04\x02"), "a bool that is neither true nor false");
  EXPECT_EQ(refused("\x12"), "an unknown kind of IValue");
  EXPECT_EQ(refused("\x0e" + std::string(100000, '\x0b')), "values nested more than 64 deep");
}

TEST(IValueTest, EveryTruncationAndEveryChangedByteIsAnErrorOrAValue) {
  c10::Dict<std::string, std::vector<at::Tensor>> tensors;
  tensors.insert("one", std::vector<at::Tensor>{at::ones(1)});
  c10::impl::GenericList list(c10::AnyType::get());
  list.push_back(tensors);
  list.push_back(c10::List<std::string>({"a"}));
  list.push_back(c10::Device("cuda:1"));
  list.push_back(c10::IValue(~uint64_t{0}));
  expect_only_bad_values(c10::IValue(list));
}

TEST(IValueTest, NestingIsBoundedOnBothSides) {
  c10::IValue deep;
  for (int i = 0; i < 60; ++i) deep = c10::ivalue::Tuple::create({deep});
  EXPECT_TRUE(round_trip(deep).isTuple());
  for (int i = 0; i < 10; ++i) deep = c10::ivalue::Tuple::create({deep});
  Payload payload;
  ValueWriter writer(payload);
  EXPECT_THROW(writer.ivalue(deep), BadValue);
  Payload bytes;
  for (int i = 0; i < 100000; ++i) bytes.values += "\x06\x01";  // Tuples of one, ever deeper.
  ValueReader reader(bytes);
  EXPECT_THROW((void)reader.ivalue(), BadValue);
}

TEST(IValueTest, RandomBytesAreAnErrorOrAValue) {
  // 50,000 drawn strings of up to 40 bytes; those that begin well go deeper.
  uint64_t accepted = 0;
  for (uint64_t i = 0; i < 50000; ++i) {
    Payload payload;
    const uint64_t size = mix(5, i) % 40;
    for (uint64_t at = 0; at < size; ++at)
      payload.values.push_back(static_cast<char>(mix(i, at) % (i % 3 == 0 ? 256 : 20)));
    payload.tensors.resize(2);
    ValueReader reader(payload);
    try {
      (void)reader.ivalue();
      ++accepted;
    } catch (const BadValue&) {
    }
  }
  EXPECT_GT(accepted, 1000u);
}

}  // namespace
}  // namespace rehearsal
