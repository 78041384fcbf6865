#include "command_line/coverage_text.h"

#include <gtest/gtest.h>

#include "sim/world/coverage.h"

namespace rehearsal::command_line {
namespace {

uint32_t first_pair(const std::string& table) {
  for (const sim::CoverageTable& made : sim::coverage_tables())
    if (made.name == table) return made.number(0, 0);
  ADD_FAILURE() << table;
  return 0;
}

size_t lines_that_hold(const std::string& text, const std::string& part) {
  size_t lines = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++lines;
  return lines;
}

TEST(CoverageText, ShowsEachPairAsThePowerOfTenOfItsRuns) {
  const CoverageCounts counts = {{first_pair("holding"), 1234}, {first_pair("holding") + 1, 7}};
  const std::string text = coverage_text(counts);
  EXPECT_EQ(lines_that_hold(text, "Call               3 0 . ."), 1u) << text;
  EXPECT_EQ(lines_that_hold(text, "Call               . . . ."), 2u) << text;
  EXPECT_NE(text.find("a nothing, b calls it waits for,"), std::string::npos) << text;
  for (size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
    EXPECT_LE(text.find('\n', begin) - begin, 100u);
}

TEST(CoverageText, AsJsonNamesThePairsThatCame) {
  const CoverageCounts counts = {{first_pair("order") + 1, 12}, {first_pair("fault"), 1}};
  const Json json = coverage_json(counts);
  EXPECT_EQ(json["order"].size(), 1u);
  EXPECT_EQ(json["order"]["Call"]["Response"], 12);
  EXPECT_EQ(json["fault"]["Call"]["link lost"], 1);
  EXPECT_TRUE(json["holding"].empty());
  EXPECT_EQ(coverage_from_json(json), counts);
}

TEST(CoverageText, RefusesANameThatThereIsNot) {
  Json json = coverage_json({});
  json["fault"]["Call"]["moon"] = 1;
  EXPECT_THROW(static_cast<void>(coverage_from_json(json)), std::exception);
  EXPECT_THROW(static_cast<void>(coverage_from_json(Json::object())), std::exception);
  json["fault"]["Call"] = {{"link lost", -1}};
  EXPECT_THROW(static_cast<void>(coverage_from_json(json)), std::exception);
}

}  // namespace
}  // namespace rehearsal::command_line
