// Goal: a number of a file is one that its place holds, or the file is refused. Method: numbers at
// and beyond the ends of types, and what is no whole number.
#include "record/json_number.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace rehearsal::record {
namespace {

using Json = nlohmann::ordered_json;

template <class Whole>
Whole number_in(const std::string& text) {
  return number_of<Whole>(Json::parse(text));
}

TEST(JsonNumber, IsTakenToTheEndsOfItsType) {
  EXPECT_EQ(number_in<uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(number_in<uint64_t>("0"), 0U);
  EXPECT_EQ(number_in<int64_t>("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(number_in<int64_t>("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(number_in<uint32_t>("4294967295"), UINT32_MAX);
  EXPECT_EQ(number_in<int>("-7"), -7);
}

TEST(JsonNumber, ThatItsPlaceDoesNotHoldIsRefused) {
  for (const char* text :
       {"18446744073709551616", "3e20", "1.5", "7.0", "-1", "true", "null", "\"7\"", "[7]", "{}"})
    EXPECT_THROW(number_in<uint64_t>(text), std::range_error) << text;
  for (const char* text : {"9223372036854775808", "-9223372036854775809", "-3e20"})
    EXPECT_THROW(number_in<int64_t>(text), std::range_error) << text;
  EXPECT_THROW(number_in<uint32_t>("4294967296"), std::range_error);
  EXPECT_THROW(number_in<int>("2147483648"), std::range_error);
}

}  // namespace
}  // namespace rehearsal::record
