#include "sim/explain/value_text.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "core/functions/schema_arguments.h"
#include "core/values/value.h"

namespace rehearsal::sim {
namespace {

struct Batch {
  int64_t step = 0;
  std::vector<std::string> names;
  friend void describe(Batch& batch, auto&& fields) { fields(batch.step, batch.names); }
};

template <class T>
void write_one(ValueWriter& writer, WireSignature& signature, const T& value) {
  Value<T>::write(writer, value);
  Value<T>::sign(signature);
  signature += ',';
}

// As a call with these arguments is told.
template <class... T>
std::string told(const T&... values) {
  Payload payload;
  ValueWriter writer(payload);
  WireSignature signature;
  (write_one(writer, signature, values), ...);
  return values_text(payload, signature.text());
}

TEST(ValueText, NumbersTextsAndLengthsOfTime) {
  EXPECT_EQ(told(int64_t{-3}, uint8_t{7}, true), "-3, 7, true");
  EXPECT_EQ(told(0.1F, 0.1, std::string("a\nb")), "0.1, 0.1, \"a.b\"");
  EXPECT_EQ(told(std::string(50, 'x')), "\"" + std::string(40, 'x') + "\"…");
  EXPECT_EQ(told(std::chrono::nanoseconds(std::chrono::milliseconds(5))), "0.005 s");
  EXPECT_EQ(told(Unit{}), "");
}

TEST(ValueText, TensorsByTypeSizesAndFirstElements) {
  EXPECT_EQ(told(at::full({2}, 0.5)), "float[2]{0.5, 0.5}");
  EXPECT_EQ(told(at::arange(6).view({2, 3})), "long[2,3]{0, 1, 2, 3, …}");
  EXPECT_EQ(told(at::scalar_tensor(3)), "float[]{3}");
  EXPECT_EQ(told(at::ones({2, 2}).t().expand({2, 2, 2})), "float[2,2,2]");
  EXPECT_EQ(told(at::zeros({0, 4})), "float[0,4]");
  EXPECT_EQ(told(at::Tensor()), "undefined");
}

TEST(ValueText, ContainersAndStructs) {
  EXPECT_EQ(told(std::vector<int64_t>{1, 2, 3, 4, 5, 6}, int64_t{9}), "[1, 2, 3, 4, …], 9");
  EXPECT_EQ(told(std::vector<std::vector<int64_t>>{}, int64_t{9}), "[], 9");
  EXPECT_EQ(told(std::array<int64_t, 2>{1, 2}, int64_t{9}), "[1, 2], 9");
  EXPECT_EQ(told(std::map<std::string, int64_t>{{"a", 1}, {"b", 2}}, int64_t{9}),
            "{\"a\": 1, \"b\": 2}, 9");
  EXPECT_EQ(told(std::map<std::string, int64_t>{}, int64_t{9}), "{}, 9");
  EXPECT_EQ(told(std::optional<int64_t>(), std::optional<int64_t>(4)), "none, 4");
  EXPECT_EQ(told(std::pair(int64_t{1}, true), std::tuple(int64_t{2}, 0.5)), "(1, true), (2, 0.5)");
  EXPECT_EQ(told(Batch{3, {"x"}}, int64_t{9}), "{3, [\"x\"]}, 9");
}

TEST(ValueText, WhatOnlyTheProgramCanReadIsLeftOpen) {
  Payload payload;
  ValueWriter writer(payload);
  writer.integer(1);
  writer.text("a path");
  EXPECT_EQ(values_text(payload, "int64,Path,int64,"), "1, …");
  EXPECT_EQ(values_text(payload, "int64,int64,Tensor,"), "1, 3, …");  // does not fit
}

TEST(ValueText, ManyBytesAreCountedOnly) {
  EXPECT_EQ(told(std::vector<std::string>(100, std::string(100, 'x'))), "10101 bytes of values");
}

TEST(ValueText, ReferencesAreForks) {
  Payload payload;
  payload.values = std::string(1, '\0');
  payload.forks.push_back({RRefId{{{}, {1, 2}, 3}, WorkerId{1}, {}, 0}, ForkId{{{}, {1, 2}, 4}}});
  const std::string text = values_text(payload, "rref<>,");
  EXPECT_TRUE(text.starts_with("fork ")) << text;
  EXPECT_NE(text.find("#4 of "), std::string::npos) << text;
}

TEST(ValueText, OperatorsHaveKeywords) {
  Payload payload;
  ValueWriter writer(payload);
  SchemaArguments arguments;
  arguments.positional = {at::ones({1}), int64_t{2}};
  arguments.keywords = {{"alpha", 0.5}};
  Value<SchemaArguments>::write(writer, arguments);
  EXPECT_EQ(schema_values_text(payload), "float[1]{1}, 2, alpha=0.5");
}

}  // namespace
}  // namespace rehearsal::sim
