// The page beside this file is right: its code is the example's, and the example does what the page
// shows.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace rehearsal {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string page() { return read_file("tests/how_to/README.md"); }

// The code between fences that begin with ```LANGUAGE.
std::vector<std::string> blocks(const std::string& text, const std::string& language) {
  std::vector<std::string> found;
  const std::string fence = "```" + language + "\n";
  for (size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at)) {
    at += fence.size();
    const size_t end = text.find("```", at);
    found.push_back(text.substr(at, end - at));
    at = end;
  }
  return found;
}

struct Ran {
  int status = -1;
  std::string output;
};

Ran run_shell(const std::string& command) {
  const std::string file = testing::TempDir() + "how_to_" + std::to_string(getpid());
  const int status = std::system(("( " + command + " ) >'" + file + "' 2>&1 </dev/null").c_str());
  Ran ran{WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(file)};
  std::filesystem::remove(file);
  return ran;
}

Ran run_example(const std::string& filter) {
  return run_shell(std::string(REHEARSAL_EXAMPLE) + " --gtest_filter=" + filter);
}

TEST(HowTo, TheCodeOfThePageIsThatOfTheExample) {
  // Goal: what a reader copies compiles. Method: every block of code is part of a file here.
  const std::filesystem::path folder = "tests/how_to/example";
  const std::string code =
      read_file(folder / "training.cc") + read_file(folder / "training_test.cc");
  const std::vector<std::string> cpp = blocks(page(), "cpp");
  ASSERT_GE(cpp.size(), 3u);
  for (const std::string& block : cpp) EXPECT_NE(code.find(block), std::string::npos) << block;
  const std::string cmake = read_file(folder / "CMakeLists.txt");
  const std::vector<std::string> lists = blocks(page(), "cmake");
  ASSERT_EQ(lists.size(), 1u);
  EXPECT_NE(cmake.find(lists.front()), std::string::npos) << lists.front();
}

TEST(HowTo, OneRunOfTheTrainerHolds) {
  // Goal: the fault does not show by itself. Method: the example's first test.
  const Ran ran = run_example("Training.HoldsInOneRun");
  EXPECT_EQ(ran.status, 0) << ran.output;
}

TEST(HowTo, TheHuntFindsWhatThePageSaysAndItsLineRepeatsIt) {
  // Goal: from a test to a line that repeats the fault. Method: as a reader would, by copy and
  // paste.
  const Ran found = run_example("Training.AppliesEveryStepOnce");
  EXPECT_EQ(found.status, 1);
  const std::string finding = " updates in 10 steps";
  EXPECT_NE(page().find(finding), std::string::npos);
  EXPECT_NE(found.output.find(finding), std::string::npos) << found.output;
  const size_t from = found.output.find("REHEARSAL_RUN='--seed ");
  ASSERT_NE(from, std::string::npos) << found.output;
  const std::string line = found.output.substr(from, found.output.find('\n', from) - from);
  EXPECT_NE(line.find("--benign --decide "), std::string::npos) << line;
  const Ran again = run_shell(line);
  EXPECT_EQ(again.status, 1);
  EXPECT_NE(again.output.find(finding), std::string::npos) << again.output;
}

TEST(HowTo, AnOracleOfOnesOwnSeesTheFaultWhenItHappens) {
  // Goal: ten lines are enough. Method: the oracle of the page, and its silence for the first run.
  const Ran found = run_example("Training.BeginsNoPushThatNoStepHasAskedFor");
  EXPECT_EQ(found.status, 1);
  EXPECT_NE(found.output.find("oracle 'pushes' failed on the model: a push begins that no step has "
                              "asked for"),
            std::string::npos)
      << found.output;
}

TEST(HowTo, TheMendedTrainerHolds) {
  // Goal: the page's last step. Method: the same hunt.
  const Ran ran = run_example("MendedTraining.AppliesEveryStepOnce");
  EXPECT_EQ(ran.status, 0) << ran.output;
}

}  // namespace
}  // namespace rehearsal
