#include "command_line/junit.h"

#include <gtest/gtest.h>

#include <filesystem>
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
  const std::string text = junit_text("run", {test});
  EXPECT_NE(text.find("name=\"a&lt;b&gt;&amp;&quot;c&quot;\""), std::string::npos);
  EXPECT_NE(text.find("message=\"o: x: 1\">o: x: 1&#10;2\\t3\\x01&#10;r</failure>"),
            std::string::npos)
      << text;
}

TEST_F(Junit, ThatCannotBeWrittenIsToldBehindTheResult) {
  // Goal: no result is lost with its file. Method: a device that is full, of each command.
  const std::string error =
      ": /dev/full: cannot be written: No space left on device; make room there, or name another "
      "place";
  for (const std::string command :
       {"run toy --seed 6", "hunt toy --seeds 3 --jobs 1", "verify toy --seeds 2"}) {
    const ToolRun holds = run_tool(command + " --junit /dev/full");
    EXPECT_EQ(holds.status, 1) << command;
    EXPECT_EQ(holds.out_lines().size(), run_tool(command).out_lines().size()) << holds.out;
    ASSERT_FALSE(holds.err_lines().empty()) << command;
    EXPECT_EQ(holds.err_lines().back(),
              "rehearsal " + command.substr(0, command.find(' ')) + error);
  }
  const ToolRun fails = run_tool("run toy --seed 6 --set fail_at=6 --junit /dev/full");
  EXPECT_EQ(fails.status, 1);
  EXPECT_TRUE(fails.out_lines().back().ends_with(" run toy --seed 6 --set fail_at=6"));
  EXPECT_EQ(fails.err_lines().back(), "rehearsal run" + error);
  const ToolRun differs =
      run_tool("verify toy --seeds 5 --set drift_at=4 --junit /dev/full --json");
  EXPECT_EQ(differs.status, 3);
  EXPECT_EQ(differs.json()["seed"], 4);
}

TEST_F(Junit, OfARunThatIsRefusedIsNotMade) {
  EXPECT_EQ(run_tool("run toy --compare /no/file --junit " + file_).status, 2);
  EXPECT_FALSE(std::filesystem::exists(file_));
}

}  // namespace
}  // namespace rehearsal::command_line
