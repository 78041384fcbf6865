#include <gtest/gtest.h>

#include "core/api/pipeline.h"

namespace rehearsal {
namespace {

using enum PipelinePass;

PipelineReport report_of(const std::string& name, std::vector<PipelineSpan> spans) {
  return {.owner = {.name = name, .id = WorkerId{0}}, .spans = std::move(spans), .bubble = 0};
}

TEST(PipelinePicture, HasARowForEachOwnerAndAColumnForEachStretchOfTime) {
  PipelineStep step;
  EXPECT_EQ(picture_of(step, 12), "");
  step.reports = {report_of("ps", {{{forward, 0, 0}, 100, 200}, {{backward, 0, 0}, 300, 500}}),
                  report_of("ps1", {{{forward, 1, 0}, 200, 300}, {{weights, 1, 0}, 300, 300}})};
  EXPECT_EQ(picture_of(step, 12),
            "ps   F0 ...B0    \n"
            "ps1  ...F0 ......\n");
}

TEST(PipelinePicture, NamesTheStageWhereAnOwnerHasSeveral) {
  PipelineStep step;
  step.reports = {report_of("ps", {{{forward, 0, 7}, 0, 10}, {{forward, 3, 7}, 10, 20}})};
  EXPECT_EQ(picture_of(step, 10), "ps  F0:7 F3:7 \n");
  EXPECT_EQ(picture_of(step, 4), "ps  F0F3\n");
}

TEST(PipelinePicture, IsDrawnToScale) {
  PipelineStep step;
  EXPECT_EQ(svg_picture_of(step, 100), "");
  step.reports = {report_of("a<b", {{{forward, 0, 0}, 1'000'000, 2'000'000},
                                    {{backward, 0, 0}, 3'000'000, 5'000'000}}),
                  report_of("ps1", {{{weights, 1, 12}, 2'000'000, 2'100'000}})};
  const std::string picture = svg_picture_of(step, 100);
  const auto has = [&picture](const std::string& part) {
    EXPECT_NE(picture.find(part), std::string::npos) << part << "\n" << picture;
  };
  has("viewBox=\"0 0 145 86\"");
  has(">a&lt;b</text>");
  // 4 ms are 100 pixels, from 37 on.
  has("<rect class=\"F\" x=\"37\" y=\"0\" width=\"24\" height=\"22\" rx=\"2\">\n"
      "<title>F0 of 0, 0 to 1 ms</title></rect>");
  has("<rect class=\"B\" x=\"87\" y=\"0\" width=\"49\"");
  has(">B0</text>");
  has("<rect class=\"W\" x=\"62\" y=\"26\" width=\"2\"");
  has("<title>W1 of 12, 1 to 1.1 ms</title>");
  EXPECT_EQ(picture.find(">W12</text>"), std::string::npos) << "it has no room";
  has(">4 ms</text>");
}

}  // namespace
}  // namespace rehearsal
