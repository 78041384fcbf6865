#include "core/values/value.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/frame.h"
#include "tests/core/values/value_round_trip.h"

namespace rehearsal {
namespace {

struct Point {
  double x = 0;
  int32_t y = 0;
  bool operator==(const Point&) const = default;
  friend void describe(Point& point, auto&& fields) { fields(point.x, point.y); }
};

enum class Colour : uint8_t { red = 1, blue = 200 };

struct Batch {
  std::string text;
  std::vector<Point> points;
  std::optional<Colour> colour;
  std::map<std::string, std::pair<int64_t, std::string>> notes;
  bool operator==(const Batch&) const = default;
  friend void describe(Batch& batch, auto&& fields) {
    fields(batch.text, batch.points, batch.colour, batch.notes);
  }
};

struct Empty {
  bool operator==(const Empty&) const = default;
  friend void describe(Empty&, auto&& fields) { fields(); }
};

struct Opaque {
  int hidden = 0;
};

static_assert(Sendable<Batch>);
static_assert(Sendable<std::vector<std::optional<std::map<int64_t, std::tuple<bool, Point>>>>>);
static_assert(!Sendable<Opaque>);
static_assert(!Sendable<std::vector<Opaque>>);
static_assert(!Sendable<int*>);

TEST(Value, TextAndBytesComeBack) {
  expect_round_trip(std::string());
  expect_round_trip(std::string("zero\0inside", 11));
  expect_round_trip(std::string(100000, 'x'));
  expect_round_trip(std::vector<std::byte>{std::byte{0}, std::byte{255}});
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  expect_round_trip(all);
}

TEST(Value, ContainersComeBackHoweverNested) {
  expect_round_trip(std::optional<int64_t>());
  expect_round_trip(std::optional<std::optional<int64_t>>(std::optional<int64_t>()));
  expect_round_trip(std::vector<bool>{true, false, true});
  expect_round_trip(std::vector<std::vector<std::string>>{{}, {"a"}, {"b", ""}});
  expect_round_trip(std::map<int64_t, std::map<std::string, double>>{{-3, {{"x", 1.0}}}, {4, {}}});
  expect_round_trip(std::tuple<int64_t, std::string, std::tuple<>>{5, "five", {}});
  expect_round_trip(std::pair<std::string, std::vector<int32_t>>{"p", {1, 2}});
  expect_round_trip(std::vector<Unit>{{}, {}});
  expect_round_trip(std::vector<std::tuple<std::optional<bool>>>{{std::nullopt}, {true}});
}

TEST(Value, UserStructsComeBack) {
  expect_round_trip(Empty{});
  expect_round_trip(Point{.x = 2.5, .y = -7});
  const Batch batch{.text = "t",
                    .points = {{1, 2}, {3, 4}},
                    .colour = Colour::blue,
                    .notes = {{"n", {1, "one"}}}};
  expect_round_trip(batch);
  expect_round_trip(std::vector<Batch>{batch, {}});
}

TEST(Value, SignaturesSayWhatIsOnTheWire) {
  EXPECT_EQ(signature_of<at::Tensor>(), "Tensor");
  EXPECT_EQ(signature_of<int64_t>(), "int64");
  EXPECT_EQ(signature_of<uint8_t>(), "uint8");
  EXPECT_EQ(signature_of<float>(), "float32");
  EXPECT_EQ(signature_of<Colour>(), "uint8");
  EXPECT_EQ(signature_of<std::vector<std::optional<std::string>>>(), "[?bytes]");
  EXPECT_EQ((signature_of<std::map<int32_t, std::pair<bool, Unit>>>()), "{int32:<bool,unit>}");
  EXPECT_EQ((signature_of<std::tuple<double, Point>>()), "(float64,struct(float64,int32,),)");
  EXPECT_EQ(signature_of<c10::IValue>(), "IValue");
}

TEST(Value, TensorsTravelBesideTheBytes) {
  // The bytes name a tensor by its position; the same one twice travels twice.
  const at::Tensor a = at::arange(3);
  const Payload payload = written(std::vector<at::Tensor>{a, at::Tensor(), a});
  EXPECT_EQ(payload.tensors.size(), 3u);
  EXPECT_EQ(payload.values.size(), 4u);
  const auto back = read<std::vector<at::Tensor>>(payload);
  EXPECT_TRUE(back[0].is_same(a));
  EXPECT_FALSE(back[1].defined());
  EXPECT_TRUE(back[2].is_same(a));
}

TEST(Value, WhatCannotBeSentIsRefusedBeforeAnythingIsWritten) {
  EXPECT_THROW((void)written(at::empty({2}, at::TensorOptions().device(at::kMeta))), BadValue);
  EXPECT_THROW((void)written(at::zeros({1}).expand({int64_t{1} << 42})), BadValue);
  EXPECT_THROW((void)written(at::zeros(std::vector<int64_t>(65, 1))), BadValue);
}

TEST(Value, MoreThanOneMessageHoldsIsRefused) {
  // 64 MiB of text, and a million and one tensors.
  Payload payload;
  ValueWriter writer(payload);
  writer.text(std::string(kEnvelopeBytesMax - 100, 'x'));
  EXPECT_THROW(writer.finish(), BadValue);
  Payload many;
  ValueWriter many_writer(many);
  many.tensors.resize(kSegmentCountMax + 1);
  EXPECT_THROW(many_writer.finish(), BadValue);
}

// ---- malformed bytes ----

TEST(MalformedValue, EveryWrongByteIsNamed) {
  EXPECT_EQ(refusal<int64_t>(""), "the values end too early");
  EXPECT_EQ(refusal<int64_t>("\x80"), "the values end too early");
  EXPECT_EQ(refusal<int64_t>(std::string(11, '\xff')), "a number longer than 64 bits");
  EXPECT_EQ(refusal<int64_t>(std::string(9, '\xff') + "\x02"), "a number longer than 64 bits");
  EXPECT_EQ(refusal<bool>("\x02"), "a bool that is neither true nor false");
  EXPECT_EQ(refusal<double>("1234567"), "the values end too early");
  EXPECT_EQ(refusal<std::string>("\x05"
                                 "abcd"),
            "the values end too early");
  EXPECT_EQ(refusal<std::vector<int64_t>>("\xff\xff\x03"), "more elements than bytes");
  EXPECT_EQ(refusal<std::optional<int64_t>>("\x07"), "a bool that is neither true nor false");
  EXPECT_EQ((refusal<std::tuple<bool, bool>>("\x03\x01\x01\x01")), "a tuple of another size");
  EXPECT_EQ(refusal<Point>("\x03"), "a struct with other fields");
  EXPECT_EQ(refusal<Unit>("\x01"), "not the unit value");
  EXPECT_EQ((refusal<std::map<int64_t, bool>>("\x02\x02\x01\x02\x01")), "a map with a key twice");
  EXPECT_EQ(refusal<at::Tensor>(std::string(1, '\0')), "fewer tensors than named");
  EXPECT_EQ(refusal<at::Tensor>("\x01"), "not a tensor");
  EXPECT_EQ(refusal<bool>("\x01\x01"), "more values than the signature has");
}

TEST(MalformedValue, WhatIsLeftOverIsRefused) {
  Payload payload = of_bytes("");
  payload.tensors.push_back(at::ones(1));
  EXPECT_THROW(ValueReader(payload).finish(), BadValue);
  Payload handles = of_bytes("");
  handles.handles.push_back(nullptr);
  EXPECT_THROW(ValueReader(handles).finish(), BadValue);
}

TEST(MalformedValue, ACountIsNotBelievedBeforeItsElementsAreThere) {
  // A million promised structs in a million bytes: refused at the first, not allocated.
  std::string bytes = "\xc0\x84\x3d";  // 1,000,000
  bytes += std::string(1000000, '\x09');
  using Wide = std::tuple<Batch, Batch, Batch, Batch>;
  EXPECT_TRUE(refusal<std::vector<Wide>>(bytes).starts_with("the values would hold more than"));
}

TEST(MalformedValue, EveryTruncationAndEveryChangedByteIsAnErrorOrAValue) {
  // Nothing but BadValue may come out of any reader.
  const Batch batch{.text = "text",
                    .points = {{1, 2}, {3, 4}},
                    .colour = Colour::red,
                    .notes = {{"n", {1, "one"}}}};
  expect_only_bad_values(batch);
}

}  // namespace
}  // namespace rehearsal
