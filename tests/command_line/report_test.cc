// `report`, and what other commands tell of a failure before their last line.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::command_line {
namespace {

class ReportTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.file(name); }
  std::string run_file(const std::string& text) const {
    std::ofstream(path("some.run")) << text << "end\n";
    return path("some.run");
  }

  const TemporaryFolder folder_;
};

constexpr const char* kFailing = "run toy\n--seed 2\n--set fail_at=2\n";

TEST_F(ReportTest, TellsAFailureAsTextPageAndTrace) {
  const ToolRun run = run_tool("report " + run_file(kFailing) + " --html " + path("a.html") +
                               " --perfetto " + path("a.json"));
  EXPECT_EQ(run.status, 0) << run.err;
  ASSERT_GE(run.out_lines().size(), 4u) << run.out;
  EXPECT_EQ(run.out_lines()[0], "toy, seed 2");
  EXPECT_NE(run.out.find("toy oracle: object 7: it broke"), std::string::npos) << run.out;
  EXPECT_EQ(run.out_lines().back(), "written: " + path("a.json"));
  EXPECT_NE(read_whole_file(path("a.html")).find("toy oracle: object 7"), std::string::npos);
  const Json trace = Json::parse(read_whole_file(path("a.json")));
  EXPECT_EQ(trace["otherData"]["run"], "toy, seed 2");
}

TEST_F(ReportTest, OfARunThatHoldsAndAsJson) {
  const ToolRun run = run_tool("report --json " + run_file("run toy\n--seed 3\n"));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.json()["ok"], true);
  EXPECT_EQ(run.json()["events"], 2);
  EXPECT_EQ(run.json()["messages"], 1);
  EXPECT_TRUE(run.json()["html"].is_null());
  EXPECT_FALSE(run.json().contains("failure"));
  const Json failed = run_tool("report --json " + run_file(kFailing)).json();
  EXPECT_EQ(failed["ok"], false);
  EXPECT_EQ(failed["failure"]["oracle"], "toy oracle");
}

TEST_F(ReportTest, BadInputIsOneLineAndStatusTwo) {
  const auto refusal = [](const std::string& arguments) {
    const ToolRun run = run_tool("report " + arguments);
    EXPECT_EQ(run.status, 2) << arguments;
    EXPECT_EQ(run.err_lines().size(), 1u) << run.err;
    EXPECT_EQ(run.out, "");
    return run.err;
  };
  const std::string good = run_file(kFailing);
  EXPECT_EQ(refusal(""),
            "rehearsal report: type rehearsal report FILE, a file that 'shrink --out' or 'hunt "
            "--out' wrote\n");
  EXPECT_EQ(refusal(path("none")), "rehearsal report: " + path("none") +
                                       ": cannot be read: No such file or directory; name a file "
                                       "that 'shrink --out' wrote\n");
  EXPECT_EQ(refusal(good + " other"),
            "rehearsal report: 'other' was not expected; one FILE at a time: type rehearsal report "
            "--help\n");
  EXPECT_EQ(refusal(good + " --htm x"), "rehearsal report: no flag --htm; did you mean --html?\n");
  EXPECT_EQ(refusal(good + " --html " + path("no/such/folder.html")),
            "rehearsal report: --html " + path("no/such/folder.html") +
                ": cannot be written: No such file or directory; name another file\n");
  EXPECT_EQ(
      refusal(good + " --perfetto " + good),
      "rehearsal report: --perfetto " + good + ": this is the run itself; name another file\n");
  EXPECT_EQ(read_whole_file(good), std::string(kFailing) + "end\n");
  std::ofstream(path("foreign")) << "\x7f"
                                 << "ELF\n";
  EXPECT_EQ(refusal(path("foreign")),
            "rehearsal report: " + path("foreign") +
                ": is no file of 'shrink --out': its first line is 'run NAME --seed N'\n");
  std::ofstream(path("cut")) << "run toy\n--seed 2\n";
  EXPECT_EQ(refusal(path("cut")),
            "rehearsal report: " + path("cut") + ": is cut short: its last line is not 'end'\n");
  std::ofstream(path("tcp")) << "run toy\n--seed 2\n--net tcp\nend\n";
  EXPECT_EQ(refusal(path("tcp")),
            "rehearsal report: " + path("tcp") +
                ": holds '--net', which 'shrink --out' never writes; take that line out\n");
}

TEST_F(ReportTest, APageThatCannotBeWrittenIsToldAndTheTextWithIt) {
  // Goal: status 1, and no word of a page that was written. Method: a device that is full.
  const ToolRun run = run_tool("report " + run_file(kFailing) + " --html /dev/full");
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.out.find("toy oracle: object 7: it broke"), std::string::npos) << run.out;
  EXPECT_EQ(run.out.find("written:"), std::string::npos) << run.out;
  EXPECT_EQ(run.err,
            "rehearsal report: /dev/full: cannot be written: No space left on device; make room "
            "there, or name another place\n");
}

TEST_F(ReportTest, AFailureIsToldBeforeTheLineThatRepeatsIt) {
  const ToolRun run = run_tool("run toy --seed 2 --set fail_at=2");
  EXPECT_EQ(run.status, 1);
  const size_t told = run.out.find("\ntoy, seed 2\n    seconds  leader");
  ASSERT_NE(told, std::string::npos) << run.out;
  EXPECT_LT(told, run.out.find("toy FAILED with seed 2"));
  EXPECT_NE(run.out_lines().back().find(" run toy --seed 2 --set fail_at=2"), std::string::npos);
  const ToolRun json = run_tool("run toy --seed 2 --set fail_at=2 --json");
  EXPECT_EQ(json.json()["ok"], false);
  EXPECT_NE(json.err.find("toy, seed 2\n"), std::string::npos);
}

TEST_F(ReportTest, ARunThatEndsItsProcessIsToldAsFarAsItCame) {
  const ToolRun run = run_tool("report " + run_file("run toy\n--seed 2\n--set abort_at=2\n"));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("Call 1\n"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("process: signal 6 (Aborted)"), std::string::npos) << run.out;
}

TEST_F(ReportTest, AHuntLeavesThePageAndTheTrace) {
  const ToolRun run = run_tool("hunt toy --set fail_at=2 --first-seed 2 --out " + path("found"));
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(read_whole_file(path("found/failure.html")).find("<!doctype html>"), std::string::npos);
  const Json trace = Json::parse(read_whole_file(path("found/failure.trace.json")));
  EXPECT_EQ(trace["otherData"]["failure"], "toy oracle: object 7: it broke");
  const std::string text = read_whole_file(path("found/failure.txt"));
  EXPECT_TRUE(text.starts_with("toy, seed 2\n    seconds  leader")) << text;
  EXPECT_TRUE(text.ends_with(run.out_lines().back() + "\n")) << text;
}

TEST_F(ReportTest, HelpShowsExamples) {
  const ToolRun run = run_tool("report --help");
  EXPECT_EQ(run.status, 0);
  EXPECT_NE(run.out.find("rehearsal report found/failure.run --html"), std::string::npos);
}

}  // namespace
}  // namespace rehearsal::command_line
