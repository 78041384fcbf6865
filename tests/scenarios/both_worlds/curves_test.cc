// The pictures that `./dev curves` draws of the training scenarios.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::command_line {
namespace {

constexpr const char* kTraining[] = {
    "rnn", "rl", "batch_rl", "parameter_server", "pipeline", "batch_parameter_server"};

// Runs a command of the shell, in which this binary is the tool. Its exit status.
int run_shell(const std::string& command) {
  const std::string whole = std::string(kToolVariable) + "=1 " + command;
  return WEXITSTATUS(std::system(whole.c_str()));
}

int draw(const std::string& arguments) {
  return run_shell("python3 scenarios/curves.py --tool " +
                   std::filesystem::read_symlink("/proc/self/exe").string() + " " + arguments +
                   " >/dev/null 2>&1");
}

std::vector<std::pair<double, double>> points_of(const std::string& picture) {
  std::vector<std::pair<double, double>> points;
  static const std::regex curve("points=\"([^\"]*)\"");
  static const std::regex point("(-?[0-9.]+),(-?[0-9.]+)");
  for (std::sregex_iterator of(picture.begin(), picture.end(), curve), end; of != end; ++of) {
    const std::string text = (*of)[1];
    for (std::sregex_iterator at(text.begin(), text.end(), point); at != end; ++at)
      points.emplace_back(std::stod((*at)[1]), std::stod((*at)[2]));
  }
  return points;
}

void expect_well_formed(const std::filesystem::path& file) {
  const std::string parse = "import sys, xml.etree.ElementTree as trees; trees.parse(sys.argv[1])";
  EXPECT_EQ(run_shell("python3 -c '" + parse + "' " + file.string()), 0) << file;
  for (const auto& [x, y] : points_of(read_whole_file(file))) {
    EXPECT_TRUE(0 <= x && x <= 640) << file;
    EXPECT_TRUE(0 <= y && y <= 280) << file;
  }
}

TEST(Curves, AreTheNotesOfARunAndTheSameBytesEachTime) {
  // Goal: a picture follows from the run. Method: one small scenario, twice, and once with another
  // number of steps.
  const TemporaryFolder made;
  const std::filesystem::path folder = made.file("curves");
  const std::filesystem::path file = folder / "pipeline" / "curve.svg";
  const std::string small = "pipeline --set size=tiny --set steps=3 --into " + folder.string();
  ASSERT_EQ(draw(small), 0);
  const std::string picture = read_whole_file(file);
  EXPECT_EQ(points_of(picture).size(), 3u) << picture;
  expect_well_formed(file);
  ASSERT_EQ(draw(small), 0);
  EXPECT_EQ(read_whole_file(file), picture);
  ASSERT_EQ(draw(small + " --set steps=4"), 0);
  EXPECT_EQ(points_of(read_whole_file(file)).size(), 4u);
  EXPECT_EQ(draw("pipeline --set no_such_option=1 --into " + folder.string()), 1);
  EXPECT_EQ(draw("quickstart"), 2);
}

// The bars of the picture of a step, of one kind of pass.
size_t bars_of(const std::string& picture, const std::string& kind) {
  size_t count = 0;
  const std::string bar = "<rect class=\"" + kind + "\"";
  for (size_t at = picture.find(bar); at != std::string::npos; at = picture.find(bar, at + 1))
    ++count;
  return count;
}

TEST(Curves, OfTheTreeShowWhoComputesWhenInAPipeline) {
  // Goal: the picture has a bar for each pass of eight micro-batches through four stages, of which
  // the first has no input to give a gradient to; and it is what the scenario draws today.
  const std::filesystem::path file = "scenarios/pipeline/step.svg";
  const std::string picture = read_whole_file(file);
  expect_well_formed(file);
  EXPECT_EQ(bars_of(picture, "F"), 32u);
  EXPECT_EQ(bars_of(picture, "B"), 24u);
  EXPECT_EQ(bars_of(picture, "W"), 32u);
  EXPECT_NE(read_whole_file("core/nn/README.md").find("](../../scenarios/pipeline/step.svg)"),
            std::string::npos);
  const TemporaryFolder made;
  const std::filesystem::path folder = made.file("curves");
  ASSERT_EQ(draw("pipeline --set size=tiny --into " + folder.string()), 0);
  EXPECT_EQ(read_whole_file(folder / "pipeline" / "step.svg"), picture);
}

TEST(Curves, OfTheTreeAreWellFormedAndShown) {
  const std::string page = read_whole_file("scenarios/README.md");
  for (const std::string name : kTraining) {
    const std::filesystem::path file = std::filesystem::path("scenarios") / name / "curve.svg";
    EXPECT_GT(points_of(read_whole_file(file)).size(), 3u) << file;
    expect_well_formed(file);
    EXPECT_NE(page.find("](" + name + "/curve.svg)"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace rehearsal::command_line
