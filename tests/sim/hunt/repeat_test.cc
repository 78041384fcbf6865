// The line that a failing hunt prints really repeats the failure: this binary starts itself.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/mutants.h"
#include "observe/spans.h"
#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/sim/adding_program.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::sim {
namespace {

constexpr const char* kSampleVariable = "REHEARSAL_TEST_SAMPLE";

bool is_sample() { return std::getenv(kSampleVariable) != nullptr; }

// The samples fail. Each is run by a test below, in a process of its own.

TEST(Sample, DoubledCalls) {
  if (!is_sample()) GTEST_SKIP() << "for the tests of this folder";
  const Program program = adding_program();
  ClusterOptions options{.faults = FaultLevel::hostile};
  options.adjust_node = [](NodeOptions& node) {
    node.mutants = {"no_deduplication", "position_not_told"};
  };
  EXPECT_TRUE(hunt({.cluster = options}, [&program](Seed seed, const ClusterOptions& given) {
    Cluster cluster(seed, program, given);
    cluster.run();
  }));
}

TEST(Sample, WrongExpectation) {
  if (!is_sample()) GTEST_SKIP() << "for the tests of this folder";
  const Program program = adding_program();
  EXPECT_TRUE(hunt({.cluster = {.faults = FaultLevel::hostile}},
                   [&program](Seed seed, const ClusterOptions& given) {
                     Cluster cluster(seed, program, given);
                     EXPECT_EQ(cluster.run().network.losses, 0u) << "a link was lost";
                   }));
}

constexpr int kJudgeThrows = __LINE__ + 2;
void judge(Seed seed) {
  if (seed.value == 2) throw std::logic_error("the total is wrong");
}

TEST(Sample, ThrowingScene) {
  if (!is_sample()) GTEST_SKIP() << "for the tests of this folder";
  const Program program = adding_program();
  EXPECT_TRUE(hunt({.seeds = 3}, [&program](Seed seed, const ClusterOptions& given) {
    Cluster cluster(seed, program, given);
    cluster.run();
    judge(seed);
  }));
}

TEST(Sample, EndOfTheProcess) {
  if (!is_sample()) GTEST_SKIP() << "for the tests of this folder";
  EXPECT_TRUE(holds_for_seeds(
      9, [](Seed seed) { REHEARSAL_CHECK(seed.value != 3, "the program has a fault"); }));
}

struct Ran {
  int status = -1;
  std::string output;

  // The line that begins with REHEARSAL_RUN.
  [[nodiscard]] std::string command() const {
    std::istringstream stream(output);
    std::string found;
    for (std::string line; std::getline(stream, line);)
      if (line.starts_with("REHEARSAL_RUN=")) found = line;
    return found;
  }
};

Ran run_shell(const std::string& command) {
  const TemporaryFolder folder;
  const std::string file = folder.file("output");
  const int status = std::system(("( " + command + " ) >'" + file + "' 2>&1 </dev/null").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_whole_file(file)};
}

class Repeat : public testing::Test {
 protected:
  void SetUp() override {
    setenv(kSampleVariable, "1", 1);
    setenv("REHEARSAL_REPORT", folder_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv(kSampleVariable);
    unsetenv("REHEARSAL_REPORT");
  }

  static Ran hunt_sample(const std::string& name) {
    const std::string binary = std::filesystem::read_symlink("/proc/self/exe");
    return run_shell("'" + binary + "' --gtest_filter=Sample." + name);
  }

  const TemporaryFolder made_;
  const std::string folder_ = made_.file("report");
};

TEST_F(Repeat, TheLineOfAFailedOracleShowsTheSameFailure) {
  // Goal: copy and paste. Method: run the printed line in a shell; the same oracle on the same
  // frame, and the file of the report does the same.
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants, and so no failure";
  const Ran found = hunt_sample("DoubledCalls");
  EXPECT_EQ(found.status, 1);
  EXPECT_NE(found.output.find("oracle 'at-most-once' failed on frame"), std::string::npos)
      << found.output;
  EXPECT_NE(found.output.find("choices are left"), std::string::npos) << found.output;
  const std::string command = found.command();
  ASSERT_NE(command, "") << found.output;
  const size_t from = found.output.find("oracle 'at-most-once'");
  const std::string finding = found.output.substr(from, found.output.find('\n', from) - from);
  const Ran again = run_shell(command);
  EXPECT_EQ(again.status, 1) << again.output;
  EXPECT_NE(again.output.find(finding), std::string::npos) << again.output;
  const std::string file = folder_ + "/Sample.DoubledCalls/failure.run";
  const Ran from_file =
      run_shell("REHEARSAL_RUN=@" + file + command.substr(command.find("' ") + 1));
  EXPECT_EQ(from_file.status, 1) << from_file.output;
  EXPECT_NE(from_file.output.find(finding), std::string::npos) << from_file.output;
  EXPECT_EQ(command.find("--strategy"), std::string::npos) << command;
}

TEST_F(Repeat, TheReportHasAPageATraceADiagramAndTheEvents) {
  // Goal: what `rehearsal hunt --out` leaves. Method: look into each file.
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants, and so no failure";
  const Ran found = hunt_sample("DoubledCalls");
  const std::string folder = folder_ + "/Sample.DoubledCalls/";
  EXPECT_NE(found.output.find("its report: " + folder + "failure.html"), std::string::npos)
      << found.output;
  const std::string page = read_whole_file(folder + "failure.html");
  EXPECT_TRUE(page.starts_with("<!doctype html>")) << page.substr(0, 100);
  EXPECT_NE(page.find("Sample.DoubledCalls, seed "), std::string::npos);
  EXPECT_NE(page.find("oracle 'at-most-once' failed on frame"), std::string::npos);
  EXPECT_NE(read_whole_file(folder + "failure.trace.json").find("\"traceEvents\""),
            std::string::npos);
  EXPECT_NE(read_whole_file(folder + "events.txt"), "");
  const std::string text = read_whole_file(folder + "failure.txt");
  EXPECT_NE(text.find("without any of these it holds:\n"), std::string::npos) << text;
  EXPECT_NE(text.find(": the link is cut at message "), std::string::npos) << text;
  EXPECT_NE(text.find("choices are left"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with(found.command() + "\n")) << text;
}

TEST_F(Repeat, TheReportOfASceneThatThrowsShowsWhere) {
  // Goal: the page's mark and the diagram are at the throw, with its stack; the spans of all calls
  // are beside them. Method: a scene that throws after its run.
  const Ran found = hunt_sample("ThrowingScene");
  EXPECT_EQ(found.status, 1);
  EXPECT_NE(found.output.find("the total is wrong"), std::string::npos) << found.output;
  const std::string folder = folder_ + "/Sample.ThrowingScene/";
  const std::string text = read_whole_file(folder + "failure.txt");
  const size_t thrown = text.find("thrown in the scene: std::logic_error: the total is wrong\n");
  ASSERT_NE(thrown, std::string::npos) << text;
  const std::string stack = text.substr(text.find('\n', thrown) + 1);
  EXPECT_TRUE(stack.starts_with("  at judge, ")) << stack;
  EXPECT_NE(stack.find("repeat_test.cc:" + std::to_string(kJudgeThrows) + "\n"), std::string::npos)
      << stack;
  const std::string page = read_whole_file(folder + "failure.html");
  EXPECT_NE(page.find("\"thrownAt\":"), std::string::npos);
  EXPECT_EQ(page.find("\"thrownAt\":-1"), std::string::npos);
  EXPECT_NE(page.find("thrown in the scene"), std::string::npos);
  const auto spans = observe::read_spans(read_whole_file(folder + "failure.spans.json"));
  ASSERT_TRUE(spans.ok()) << to_string(spans.error());
  EXPECT_EQ(spans.value().names, adding_program().names());
  EXPECT_FALSE(spans.value().spans.empty());
}

TEST_F(Repeat, TheLineOfAFailedExpectationShowsItWhereItIs) {
  // Goal: an expectation after the run is shrunk and repeated, too. Method: a lost link that the
  // scene does not expect.
  const Ran found = hunt_sample("WrongExpectation");
  EXPECT_EQ(found.status, 1);
  EXPECT_NE(found.output.find("a link was lost"), std::string::npos) << found.output;
  ASSERT_NE(found.command(), "") << found.output;
  EXPECT_NE(found.command().find(" --benign --decide "), std::string::npos) << found.command();
  const bool breaks = found.command().find(" cut:") != std::string::npos ||
                      found.command().find(" corruption:") != std::string::npos;
  EXPECT_TRUE(breaks) << found.command();
  const Ran again = run_shell(found.command());
  EXPECT_EQ(again.status, 1);
  EXPECT_NE(again.output.find("repeat_test.cc:"), std::string::npos) << again.output;
  EXPECT_NE(again.output.find("a link was lost"), std::string::npos) << again.output;
}

TEST_F(Repeat, ADecisionThatDoesNotComeUpAnyMoreIsNamed) {
  // Goal: a regression test never passes by accident. Method: a frame that is never sent.
  const std::string binary = std::filesystem::read_symlink("/proc/self/exe");
  const Ran ran = run_shell("REHEARSAL_RUN='--seed 1 --benign --decide cut:1.0>0.0#4000.0=1' '" +
                            binary + "' --gtest_filter=Sample.WrongExpectation");
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.output.find("its decision cut:1.0>0.0#4000.0 does not come up any more"),
            std::string::npos)
      << ran.output;
}

TEST_F(Repeat, ARunThatEndsItsProcessPrintsItsLine) {
  // Goal: a failed check is repeatable. Method: the third seed fails one.
  const Ran found = hunt_sample("EndOfTheProcess");
  EXPECT_NE(found.status, 0);
  EXPECT_NE(found.command().find("REHEARSAL_RUN='--seed 3"), std::string::npos) << found.output;
  const Ran again = run_shell(found.command());
  EXPECT_NE(again.status, 0);
  EXPECT_NE(again.output.find("the program has a fault"), std::string::npos) << again.output;
}

TEST_F(Repeat, AVariableThatCannotBeUnderstoodFailsTheTestWithOneLine) {
  // Goal: no hunt with other seeds than were meant. Method: a commit that is none.
  const std::string binary = std::filesystem::read_symlink("/proc/self/exe");
  const Ran ran =
      run_shell("REHEARSAL_COMMIT=main '" + binary + "' --gtest_filter=Sample.DoubledCalls");
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.output.find("REHEARSAL_COMMIT: 'main' is no commit"), std::string::npos);
}

}  // namespace
}  // namespace rehearsal::sim
