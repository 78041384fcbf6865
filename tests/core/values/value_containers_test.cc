#include "core/values/value_containers.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/core/values/value_round_trip.h"

namespace rehearsal {
namespace {

using Shape = std::variant<std::monostate, int64_t, std::string, int64_t>;

struct Polymorphic {
  virtual ~Polymorphic() = default;
  friend void describe(Polymorphic&, auto&& fields) { fields(); }
};
struct Closed {};

static_assert(Sendable<std::unique_ptr<std::string>>);
static_assert(!Sendable<std::unique_ptr<Polymorphic>>);
static_assert(!Sendable<std::shared_ptr<std::string>>);
static_assert(!Sendable<std::variant<int64_t, Closed>>);
static_assert(!Sendable<std::unordered_map<std::string, Closed>>);

TEST(ValueContainers, SequencesComeBack) {
  expect_round_trip(std::deque<std::string>{"a", "", "c"});
  expect_round_trip(std::list<int32_t>{3, 2, 1});
  expect_round_trip(std::array<double, 3>{1, 2, 3});
  expect_round_trip(std::array<std::vector<bool>, 2>{std::vector<bool>{true}, {}});
  expect_round_trip(std::array<int64_t, 0>{});
  expect_round_trip(std::vector<std::array<int64_t, 0>>(3));
}

TEST(ValueContainers, MapsAndSetsOfEveryOrderComeBack) {
  expect_round_trip(std::map<int64_t, bool, std::greater<>>{{1, true}, {2, false}});
  expect_round_trip(std::set<std::string>{"x", "", "y"});
  expect_round_trip(std::set<int64_t, std::greater<>>{3, 1, 2});
  expect_round_trip(std::unordered_map<std::string, std::vector<int64_t>>{{"a", {1}}, {"b", {}}});
  expect_round_trip(std::unordered_set<int64_t>{-5, 0, 1000000});
}

TEST(ValueContainers, EqualUnorderedContainersHaveEqualBytes) {
  // Filled in opposite orders, with different numbers of buckets.
  std::unordered_map<std::string, int64_t> first;
  std::unordered_map<std::string, int64_t> second(1000);
  std::unordered_set<int64_t> some;
  std::unordered_set<int64_t> same(7);
  for (int64_t i = 0; i < 100; ++i) {
    first["key" + std::to_string(i)] = i;
    second["key" + std::to_string(99 - i)] = 99 - i;
    some.insert(i * i);
    same.insert((99 - i) * (99 - i));
  }
  EXPECT_EQ(written(first).values, written(second).values);
  EXPECT_EQ(written(some).values, written(same).values);
  EXPECT_EQ(written(std::unordered_set<bool>{true, false}).values, std::string("\x02\x00\x01", 3));
}

TEST(ValueContainers, TensorsOfAnUnorderedMapFollowItsOrder) {
  const at::Tensor one = at::ones(1);
  const at::Tensor two = at::ones(2);
  const std::unordered_map<std::string, at::Tensor> named{{"b", two}, {"a", one}};
  const Payload payload = written(named);
  ASSERT_EQ(payload.tensors.size(), 2u);
  EXPECT_TRUE(payload.tensors[0].is_same(one));
  const auto back = read<std::unordered_map<std::string, at::Tensor>>(payload);
  EXPECT_TRUE(back.at("b").is_same(two));
}

struct ByAddress {
  size_t operator()(const at::Tensor&) const { return 0; }
};
struct Same {
  bool operator()(const at::Tensor& a, const at::Tensor& b) const { return a.is_same(b); }
};

TEST(ValueContainers, KeysWithTensorsHaveNoOrder) {
  const std::unordered_set<at::Tensor, ByAddress, Same> tensors{at::ones(1)};
  EXPECT_EQ(refusal_to_write(tensors),
            "an unordered container whose keys hold tensors or references cannot be sent");
}

TEST(ValueContainers, AVariantComesBackByItsIndex) {
  expect_round_trip(Shape());
  expect_round_trip(Shape(std::in_place_index<1>, 5));
  expect_round_trip(Shape(std::in_place_index<3>, 5));
  expect_round_trip(Shape("text"));
  EXPECT_EQ(read<Shape>(written(Shape(std::in_place_index<3>, 5))).index(), 3u);
  EXPECT_EQ(refusal<Shape>("\x04"), "a variant without the alternative 4");
  EXPECT_EQ(refusal<Shape>("\xff\xff\xff\xff\x0f"), "a variant without the alternative 4294967295");
}

struct Throwing {
  Throwing() = default;
  Throwing(const Throwing&) { throw std::runtime_error("no copy"); }
  friend void describe(Throwing&, auto&& fields) { fields(); }
};

TEST(ValueContainers, AVariantThatLostItsValueIsRefused) {
  std::variant<int64_t, Throwing> value(5);
  const Throwing throwing;
  EXPECT_THROW(value.emplace<1>(throwing), std::runtime_error);
  ASSERT_TRUE(value.valueless_by_exception());
  EXPECT_EQ(refusal_to_write(value), "a variant that lost its value");
}

TEST(ValueContainers, AUniquePointerIsItsValueOrNull) {
  const auto text = std::make_unique<std::string>("text");
  EXPECT_EQ(*read<std::unique_ptr<std::string>>(written(text)), "text");
  EXPECT_EQ(read<std::unique_ptr<std::string>>(written(std::unique_ptr<std::string>())), nullptr);
  EXPECT_EQ(written(text).values, written(std::optional<std::string>("text")).values);
}

TEST(ValueContainers, SignaturesSayWhatIsOnTheWire) {
  EXPECT_EQ(signature_of<std::deque<bool>>(), "[bool]");
  EXPECT_EQ((signature_of<std::array<int32_t, 4>>()), "[int32*4]");
  EXPECT_EQ((signature_of<std::unordered_map<std::string, bool>>()), "{bytes:bool}");
  EXPECT_EQ(signature_of<std::unordered_set<std::string>>(), "{bytes}");
  EXPECT_EQ(signature_of<Shape>(), "one_of(unit,int64,bytes,int64,)");
  EXPECT_EQ(signature_of<std::unique_ptr<bool>>(), "?bool");
}

TEST(ValueContainers, WhatCannotBeInThemIsNamed) {
  EXPECT_EQ((refusal<std::array<bool, 2>>("\x03\x01\x01\x01")), "an array of another size");
  EXPECT_EQ(refusal<std::set<bool>>("\x02\x01\x01"), "a set with an element twice");
  EXPECT_EQ(refusal<std::unordered_set<bool>>("\x02\x01\x01"), "a set with an element twice");
  EXPECT_EQ((refusal<std::unordered_map<bool, bool>>("\x02\x01\x01\x01\x01")),
            "a map with a key twice");
  EXPECT_EQ(refusal<std::list<int64_t>>("\xff\xff\x03"), "more elements than bytes");
  EXPECT_EQ(refusal<std::monostate>("\x01"), "not the empty alternative of a variant");
}

TEST(ValueContainers, EveryTruncationAndEveryChangedByteIsAnErrorOrAValue) {
  using Deep = std::tuple<std::unordered_map<std::string, std::set<int64_t>>, std::vector<Shape>,
                          std::list<std::array<bool, 2>>, std::deque<std::optional<std::string>>>;
  const std::list<std::array<bool, 2>> bools{{true, false}};
  const std::set<int64_t> numbers{1, 2};
  expect_only_bad_values(Deep{{{"a", numbers}}, {Shape(), Shape("t")}, bools, {"x", std::nullopt}});
}

}  // namespace
}  // namespace rehearsal
