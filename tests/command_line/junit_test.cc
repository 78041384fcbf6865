#include "command_line/junit.h"

#include <gtest/gtest.h>

#include <regex>

#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::command_line {
namespace {

class Junit : public testing::Test {
 protected:
  // The written text, with all times and the tool's name replaced.
  std::string written() const {
    std::string text = read_whole_file(file_);
    text = std::regex_replace(text, std::regex("time=\"[0-9.]+\""), "time=\"T\"");
    return std::regex_replace(text, std::regex("/[^ \"]*tests_command_line"), "tool");
  }
  const TemporaryFolder folder_;
  const std::string file_ = folder_.file("junit.xml");
};

TEST_F(Junit, HasATestCaseForEachScenarioOfAHunt) {
  // Goal: what CI systems show of a failed hunt. Method: the whole file.
  const ToolRun run = run_tool(
      "hunt toy other --seeds 4 --set fail_at=3 --jobs 1 --first-seed 3 --shrink-for 0s --junit " +
      file_);
  EXPECT_EQ(run.status, 1);
  const std::string text = written();
  EXPECT_EQ(text.find("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
                      "  <testsuite name=\"rehearsal hunt\" tests=\"2\" failures=\"1\" "
                      "errors=\"0\" time=\"T\">\n"
                      "    <testcase classname=\"rehearsal hunt\" name=\"toy\" time=\"T\">\n"),
            0u)
      << text;
  EXPECT_NE(text.find("<property name=\"seed\" value=\"3\"/>"), std::string::npos) << text;
  EXPECT_NE(text.find("<failure type=\"toy oracle\" message=\"toy oracle: object 7: it broke\">toy "
                      "oracle: object 7: it broke&#10;tool run toy --seed 3 --set size=tiny --set "
                      "fail_at=3</failure>\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("name=\"other\" time=\"T\">\n      <properties>"), std::string::npos) << text;
}

TEST_F(Junit, RunAndVerifyWriteTheirVerdict) {
  // Goal: one test case each, with the oracle as type. Method: a run that holds, a verify that
  // finds a difference.
  EXPECT_EQ(run_tool("run toy --seed 6 --junit " + file_).status, 0);
  EXPECT_NE(written().find("name=\"rehearsal run\" tests=\"1\" failures=\"0\""), std::string::npos);
  EXPECT_NE(written().find("<property name=\"net\" value=\"sim\"/>"), std::string::npos);
  EXPECT_EQ(run_tool("verify toy --seeds 5 --set drift_at=4 --junit " + file_).status, 3);
  EXPECT_NE(written().find("<failure type=\"determinism\" message=\"determinism: event 2 differs:"),
            std::string::npos)
      << written();
  EXPECT_EQ(run_tool("verify toy --seeds 5 --junit " + file_).status, 0);
  EXPECT_NE(written().find("name=\"rehearsal verify\" tests=\"1\" failures=\"0\""),
            std::string::npos);
}

TEST_F(Junit, TextThatXmlCannotHoldIsEscaped) {
  // Goal: a file that every parser takes. Method: each special character, and one that has no form.
  JunitCase test{
      .name = "a<b>&\"c\"", .failure = sim::RunFailure{"o", "x", "1\n2\t3\x01"}, .replay = "r"};
  write_junit(file_, "run", {test});
  EXPECT_NE(written().find("name=\"a&lt;b&gt;&amp;&quot;c&quot;\""), std::string::npos);
  EXPECT_NE(written().find("message=\"o: x: 1\">o: x: 1&#10;2\\t3\\x01&#10;r</failure>"),
            std::string::npos)
      << written();
}

}  // namespace
}  // namespace rehearsal::command_line
