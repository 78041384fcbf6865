#include "core/base/json_bounds.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace rehearsal {
namespace {

using Json = nlohmann::json;

std::string nested(size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

std::string object_of(size_t names) {
  std::string text = "{";
  for (size_t i = 0; i < names; ++i)
    text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":[1,2,3]";
  return text + "}";
}

TEST(JsonBounds, AreOfLevelsAndOfTheNamesOfAnObject) {
  // Goal: the last value within each bound is read, the next one is refused. Method: both.
  EXPECT_EQ(parse_bounded<Json>(nested(kJsonDepthMax)).size(), 1u);
  EXPECT_THROW(check_json_bounds(nested(kJsonDepthMax + 1)), std::length_error);
  EXPECT_EQ(parse_bounded<Json>(object_of(kJsonNamesMax)).size(), kJsonNamesMax);
  EXPECT_THROW(check_json_bounds(object_of(kJsonNamesMax + 1)), std::length_error);
}

TEST(JsonBounds, AreNotTouchedByWhatTextsHoldOrByManyShallowValues) {
  // Goal: only what nests counts. Method: brackets, marks and commas in texts, and arrays of many
  // values.
  const std::string text = R"(["\"[[{{,,\\", "\\", "]"])";
  EXPECT_EQ(parse_bounded<Json>(text), (Json{"\"[[{{,,\\", "\\", "]"}));
  std::string many = "[";
  for (int i = 0; i < 100'000; ++i) many += "[{},[]],";
  EXPECT_EQ(parse_bounded<Json>(many + "0]").size(), 100'001u);
  EXPECT_NO_THROW(check_json_bounds("[\"" + nested(1'000) + "\"]"));
}

TEST(JsonBounds, SayNothingOfWhatIsNoJson) {
  // Goal: the parser refuses that, with its own words. Method: texts that end too early or close
  // what was never opened.
  for (const char* text : {"", "\"", "\"\\", "]]}}", "[}", "{,", "[\""}) {
    EXPECT_NO_THROW(check_json_bounds(text)) << text;
    EXPECT_THROW(static_cast<void>(parse_bounded<Json>(text)), Json::exception) << text;
  }
}

}  // namespace
}  // namespace rehearsal
