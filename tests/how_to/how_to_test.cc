// The page beside this file is right: its code is the example's, and the example does what the page
// shows.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/leased_port.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal {
namespace {

std::string page() { return read_whole_file("tests/how_to/README.md"); }
std::string page_of_shared_state() { return read_whole_file("tests/how_to/shared_state.md"); }

std::string page_of_maps() { return read_whole_file("tests/how_to/device_maps.md"); }

std::string page_of_devices() { return read_whole_file("tests/how_to/simulated_devices.md"); }

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
  const TemporaryFolder folder;
  const std::string file = folder.file("output");
  const int status = std::system(("( " + command + " ) >'" + file + "' 2>&1 </dev/null").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_whole_file(file)};
}

Ran run_shop(const std::string& filter) {
  return run_shell(std::string(REHEARSAL_EXAMPLE_SHOP) + " --gtest_filter=" + filter);
}

Ran run_prefetcher(const std::string& filter) {
  return run_shell(std::string(REHEARSAL_EXAMPLE_PREFETCH) + " --gtest_filter=" + filter);
}

Ran run_placed(const std::string& filter) {
  return run_shell(std::string(REHEARSAL_EXAMPLE_PLACED) + " --gtest_filter=" + filter);
}

Ran run_example(const std::string& filter) {
  return run_shell(std::string(REHEARSAL_EXAMPLE) + " --gtest_filter=" + filter);
}

// "after 1.5 virtual seconds and 67 events"
int events_in(const std::string& output) {
  const std::string words = " virtual seconds and ";
  const size_t at = output.find(words);
  return at == std::string::npos ? -1 : std::atoi(output.c_str() + at + words.size());
}

TEST(HowTo, TheCodeOfThePageIsThatOfTheExample) {
  // Goal: what a reader copies compiles. Method: every block of code is part of a file here.
  const std::filesystem::path folder = "tests/how_to/example";
  const std::string code = read_whole_file(folder / "training.cc") +
                           read_whole_file(folder / "training_test.cc") +
                           read_whole_file(folder / "training_worker.cc");
  const std::vector<std::string> cpp = blocks(page(), "cpp");
  ASSERT_GE(cpp.size(), 3u);
  for (const std::string& block : cpp) EXPECT_NE(code.find(block), std::string::npos) << block;
  const std::string cmake = read_whole_file(folder / "CMakeLists.txt");
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

TEST(HowTo, AnInvariantSeesTheFaultAtTheStepThatMakesIt) {
  // Goal: the values are looked at all the time, not at the end. Method: the invariant of the page;
  // after fewer events than the check at the end needs, and for the mended trainer never.
  const Ran found = run_example("Training.HasTheWeightsOfItsStepsAllTheTime");
  EXPECT_EQ(found.status, 1);
  const std::string finding = "oracle 'weights' failed on the values: after 2 updates: ";
  EXPECT_NE(page().find(finding), std::string::npos);
  EXPECT_NE(found.output.find(finding), std::string::npos) << found.output;
  const Ran at_the_end = run_example("Training.AppliesEveryStepOnce");
  EXPECT_LT(events_in(found.output), events_in(at_the_end.output)) << found.output;
  const Ran mended = run_example("MendedTraining.HasTheWeightsOfItsStepsAllTheTime");
  EXPECT_EQ(mended.status, 0) << mended.output;
}

TEST(HowTo, TheMendedTrainerHolds) {
  // Goal: the page's last step. Method: the same hunt.
  const Ran ran = run_example("MendedTraining.AppliesEveryStepOnce");
  EXPECT_EQ(ran.status, 0) << ran.output;
}

TEST(HowToShareState, TheCodeOfThePageIsThatOfTheExample) {
  const std::string code = read_whole_file("tests/how_to/example/shop.cc");
  const std::vector<std::string> cpp = blocks(page_of_shared_state(), "cpp");
  ASSERT_EQ(cpp.size(), 3u);
  for (const std::string& block : cpp) EXPECT_NE(code.find(block), std::string::npos) << block;
}

TEST(HowToShareState, EachHuntEndsAsThePageSays) {
  // Goal: without the lock, with it, and with a call that comes back. Method: the example's tests,
  // and the sentences of the page.
  const std::vector<std::string> told = blocks(page_of_shared_state(), "text");
  const auto line_of = [](const std::string& block) { return block.substr(0, block.find('\n')); };
  ASSERT_EQ(told.size(), 2u);
  const Ran unlocked = run_shop("Shop.OrdersOnce");
  EXPECT_EQ(unlocked.status, 1);
  EXPECT_NE(unlocked.output.find(line_of(told[0])), std::string::npos) << unlocked.output;
  const Ran locked = run_shop("ShopInTurn.OrdersOnce");
  EXPECT_EQ(locked.status, 0) << locked.output;
  const Ran comes_back = run_shop("ShopInTurn.OrdersWhatFits");
  EXPECT_EQ(comes_back.status, 1);
  EXPECT_NE(comes_back.output.find(line_of(told[1])), std::string::npos) << comes_back.output;
}

// Runs the page's program, one process for each line, and waits for all.
Ran run_side_by_side(const std::vector<std::string>& lines) {
  std::string script = "pids=; failed=0; ";
  for (const std::string& line : lines) script += line + " & pids=\"$pids $!\"; ";
  return run_shell(script + "for pid in $pids; do wait $pid || failed=1; done; exit $failed");
}

std::string port_in_words() { return std::to_string(leased_port()); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << text << " has no " << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// The lines that a reader copies, with another port and folder.
std::vector<std::string> lines_of_shells(const std::string& page, const std::string& program,
                                         const std::string& built) {
  const std::vector<std::string> shells = blocks(page, "sh");
  EXPECT_EQ(shells.size(), 1u);
  const std::string port = port_in_words();
  std::istringstream text(shells.empty() ? "" : shells.front());
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);)
    lines.push_back(replaced(replaced(line, "29500", port), program, built));
  return lines;
}

TEST(HowTo, TheTwoShellsOfThePageRunTheProgramForReal) {
  const std::vector<std::string> lines =
      lines_of_shells(page(), "build/training_worker", REHEARSAL_EXAMPLE_WORKER);
  ASSERT_EQ(lines.size(), 2u);
  const Ran ran = run_side_by_side(lines);
  EXPECT_EQ(ran.status, 0) << ran.output;
}

TEST(HowTo, TheVariablesOfEachLauncherRunTheProgramForReal) {
  // Goal: the page's table of launchers is right where none of them is installed. Method: two
  // processes with the variables that each launcher was seen to set, %RANK% and %PORT% filled in.
  const std::vector<std::string> launchers = {
      "OMPI_COMM_WORLD_RANK=%RANK% OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 "
      "MASTER_PORT=%PORT%",
      "PMI_RANK=%RANK% PMI_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=%PORT%",
      "SLURM_PROCID=%RANK% SLURM_NTASKS=2 SLURM_JOB_ID=7 SLURM_STEP_ID=0 "
      "SLURM_STEP_NODELIST=localhost MASTER_PORT=%PORT%",
      "JOB_COMPLETION_INDEX=%RANK% WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=%PORT%",
      "RANK=%RANK% WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=%PORT% TORCHELASTIC_RUN_ID=none "
      "TORCHELASTIC_RESTART_COUNT=0 TORCHELASTIC_USE_AGENT_STORE=False"};
  for (const std::string& variables : launchers) {
    const std::string placed = replaced(variables, "%PORT%", port_in_words());
    std::vector<std::string> lines;
    for (const std::string rank : {"0", "1"})
      lines.push_back("env " + replaced(placed, "%RANK%", rank) + " " + REHEARSAL_EXAMPLE_WORKER);
    const Ran ran = run_side_by_side(lines);
    EXPECT_EQ(ran.status, 0) << variables << ": " << ran.output;
  }
}

// Of the page's table: the line with the example's program, on this machine.
std::string launcher_line(const std::string& launcher) {
  const std::string text = page();
  const size_t row = text.find("| " + launcher + " | `");
  if (row == std::string::npos) return {};
  const size_t begin = text.find('`', row) + 1;
  const std::string line = text.substr(begin, text.find('`', begin) - begin);
  return replaced(line, "build/training_worker", REHEARSAL_EXAMPLE_WORKER);
}

TEST(HowTo, EachLauncherThatIsHereRunsTheProgramForReal) {
  // Goal: the page's lines, as they are typed. Method: those whose launcher is on the PATH.
  const std::vector<std::pair<std::string, std::string>> launchers = {
      {"torchrun, one machine", "torchrun"}, {"MPI, one machine", "mpirun"}, {"Slurm", "srun"}};
  bool any = false;
  for (const auto& [row, program] : launchers) {
    const std::string line = launcher_line(row);
    ASSERT_TRUE(line.starts_with(program + " ")) << line;
    if (run_shell("command -v " + program).status != 0) continue;
    any = true;
    const Ran ran = run_shell("env MASTER_PORT=" + port_in_words() + " " + line);
    EXPECT_EQ(ran.status, 0) << line << ": " << ran.output;
  }
  if (!any) GTEST_SKIP() << "none of torchrun, mpirun and srun is on the PATH";
}

TEST(HowTo, TheThreeShellsOfTheReadmeRunAScenarioForReal) {
  // Goal: what the README has a reader type. Method: its lines, with another port, side by side.
  std::vector<std::string> lines;
  std::string variables;
  for (const std::string& block : blocks(read_whole_file("README.md"), "")) {
    if (block.find("RANK=2 rehearsal worker rl") == std::string::npos) continue;
    std::istringstream text(block);
    for (std::string line; std::getline(text, line);)
      if (line.starts_with("export "))
        variables = replaced(line.substr(7), "29500", port_in_words());
      else if (!line.empty())
        lines.push_back(line);
  }
  ASSERT_EQ(lines.size(), 3u);
  const std::filesystem::path tool =
      std::filesystem::path(REHEARSAL_EXAMPLE_WORKER).parent_path() / "rehearsal";
  if (!std::filesystem::exists(tool)) GTEST_SKIP() << tool << " is not built";
  for (std::string& line : lines)
    line =
        "env " + variables + " " + replaced(line, "rehearsal", tool.string()) + " --set size=tiny";
  const Ran ran = run_side_by_side(lines);
  EXPECT_EQ(ran.status, 0) << ran.output;
}

TEST(HowToSimulateDevices, TheCodeOfThePageIsThatOfTheExample) {
  const std::filesystem::path folder = "tests/how_to/example";
  const std::string code =
      read_whole_file(folder / "prefetch.cc") + read_whole_file(folder / "prefetch_test.cc");
  const std::vector<std::string> cpp = blocks(page_of_devices(), "cpp");
  ASSERT_EQ(cpp.size(), 5u);
  for (const std::string& block : cpp) EXPECT_NE(code.find(block), std::string::npos) << block;
  const std::string cmake = read_whole_file(folder / "CMakeLists.txt");
  for (const std::string& block : blocks(page_of_devices(), "cmake"))
    EXPECT_NE(cmake.find(block), std::string::npos) << block;
}

TEST(HowToSimulateDevices, EachVersionEndsAsThePageSays) {
  // Goal: without the wait, with it, and with the memory kept. Method: the example's tests, whose
  // first seed says what the page shows.
  const std::vector<std::string> told = blocks(page_of_devices(), "text");
  ASSERT_EQ(told.size(), 2u);
  const Ran at_once = run_prefetcher("Prefetcher.AtOnce");
  EXPECT_EQ(at_once.status, 1);
  EXPECT_NE(at_once.output.find("seed 1, "), std::string::npos) << at_once.output;
  EXPECT_NE(at_once.output.find(told[0]), std::string::npos) << at_once.output;
  const Ran in_order = run_prefetcher("Prefetcher.InOrder");
  EXPECT_EQ(in_order.status, 1);
  EXPECT_NE(in_order.output.find("seed 1, 500: " + told[1].substr(0, told[1].size() - 1)),
            std::string::npos)
      << in_order.output;
  const Ran holds = run_prefetcher("Prefetcher.Holds");
  EXPECT_EQ(holds.status, 0) << holds.output;
}

TEST(HowToMapDevices, TheCodeOfThePageIsThatOfTheExample) {
  const std::filesystem::path folder = "tests/how_to/example";
  const std::string code = read_whole_file(folder / "placed.cc") +
                           read_whole_file(folder / "placed_test.cc") +
                           read_whole_file(folder / "placed_worker.cc");
  const std::vector<std::string> cpp = blocks(page_of_maps(), "cpp");
  ASSERT_EQ(cpp.size(), 7u);
  for (const std::string& block : cpp) EXPECT_NE(code.find(block), std::string::npos) << block;
}

TEST(HowToMapDevices, EachVersionEndsAsThePageSays) {
  // Goal: without the wait, and with it. Method: the example's tests, and the words of the page.
  const std::vector<std::string> told = blocks(page_of_maps(), "text");
  ASSERT_EQ(told.size(), 1u);
  const Ran at_once = run_placed("Placed.AtOnce");
  EXPECT_EQ(at_once.status, 1);
  const size_t found = at_once.output.find("missing wait: ");
  ASSERT_NE(found, std::string::npos) << at_once.output;
  EXPECT_TRUE(told[0].starts_with("missing wait: "));
  EXPECT_NE(at_once.output.find(told[0].substr(0, told[0].find(" (operation"))), std::string::npos)
      << at_once.output;
  const Ran in_order = run_placed("Placed.InOrder");
  EXPECT_EQ(in_order.status, 0) << in_order.output;
}

TEST(HowToMapDevices, TheTwoShellsOfThePageRunTheProgramForReal) {
  const std::vector<std::string> lines =
      lines_of_shells(page_of_maps(), "build/placed_worker", REHEARSAL_EXAMPLE_PLACED_WORKER);
  ASSERT_EQ(lines.size(), 2u);
  const Ran ran = run_side_by_side(lines);
  EXPECT_EQ(ran.status, 0) << ran.output;
}

}  // namespace
}  // namespace rehearsal
