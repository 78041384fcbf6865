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
#include "core/rpc/value.h"

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

void expect_round_trip(const c10::IValue& value) {
  const c10::IValue back = round_trip(value);
  EXPECT_EQ(back.tagKind(), value.tagKind());
  EXPECT_EQ(back, value);
}

TEST(IValueTest, SingleValuesComeBack) {
  expect_round_trip({});
  expect_round_trip(int64_t{-5});
  expect_round_trip(2.5);
  expect_round_trip(true);
  expect_round_trip(std::string("text"));
  expect_round_trip(c10::complex<double>(1.5, -2.5));
}

TEST(IValueTest, TensorsComeBackAsTheyAreUndefinedOnesToo) {
  const at::Tensor tensor = at::ones({2});
  EXPECT_TRUE(round_trip(tensor).toTensor().is_same(tensor));
  const c10::IValue undefined = round_trip(at::Tensor());
  ASSERT_TRUE(undefined.isTensor());
  EXPECT_FALSE(undefined.toTensor().defined());
}

TEST(IValueTest, ListsKeepTheirElementsAndTheirKind) {
  expect_round_trip(c10::List<int64_t>({1, -2, 3}));
  expect_round_trip(c10::List<double>({1.5, -2.5}));
  expect_round_trip(c10::List<bool>({true, false}));
  EXPECT_TRUE(round_trip(c10::List<int64_t>()).isIntList());
  const c10::IValue tensors = round_trip(c10::List<at::Tensor>({at::ones(1), at::zeros(2)}));
  ASSERT_TRUE(tensors.isTensorList());
  EXPECT_EQ(tensors.toTensorVector().size(), 2u);
  c10::impl::GenericList mixed(c10::AnyType::get());
  mixed.push_back(int64_t{1});
  mixed.push_back(std::string("two"));
  expect_round_trip(mixed);
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

TEST(IValueTest, WhatIsNoValueIsRefused) {
  Payload payload;
  ValueWriter writer(payload);
  EXPECT_THROW(writer.ivalue(c10::Device("cpu")), BadValue);
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
      payload.values.push_back(static_cast<char>(mix(i, at) % (i % 3 == 0 ? 256 : 16)));
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
