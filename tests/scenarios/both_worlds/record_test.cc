#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "core/base/hash.h"
#include "record/record_header.h"
#include "record/ring_file.h"
#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

// `run --net tcp --record` and `replay` of what it leaves, as a user types them.
namespace rehearsal::command_line {
namespace {

class Record : public testing::Test {
 protected:
  [[nodiscard]] std::string file(const std::string& worker) const {
    return (folder_ / (worker + ".record")).string();
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      files.push_back(entry.path().string());
    std::sort(files.begin(), files.end());
    return files;
  }
  void record(const std::string& run) const {
    const ToolRun done =
        run_tool("run " + run + " --net tcp --record-size 8M --record " + folder_.string());
    ASSERT_EQ(done.status, 0) << done.err << done.out;
  }

  const TemporaryFolder made_;
  const std::filesystem::path folder_ = made_.file("records");
};

class EveryWorker : public Record,
                    public testing::WithParamInterface<std::pair<const char*, int>> {};

TEST_P(EveryWorker, DoesAgainWhatItDidOverTcp) {
  const auto& [run, workers] = GetParam();
  record(run);
  ASSERT_EQ(files().size(), static_cast<size_t>(workers));
  for (const std::string& file : files()) {
    const ToolRun replayed = run_tool("replay " + file + " --json");
    ASSERT_EQ(replayed.status, 0) << file << "\n" << replayed.out << replayed.err;
    const Json json = replayed.json();
    EXPECT_EQ(json["ok"], true);
    EXPECT_EQ(json["ended"], true);
    EXPECT_EQ(json["failure"], nullptr);
    EXPECT_GT(json["entries"], 20);
    EXPECT_GT(json["acts"], 20);
  }
  const ToolRun checked = run_tool("check " + folder_.string() + " --json");
  ASSERT_EQ(checked.status, 0) << checked.out << checked.err;
  EXPECT_EQ(checked.json()["lives"], workers);
  EXPECT_EQ(checked.json()["finding"], nullptr);
  EXPECT_TRUE(checked.json()["unrecorded"].empty());
}

INSTANTIATE_TEST_SUITE_P(Scenarios, EveryWorker,
                         testing::Values(std::pair{"quickstart --set size=tiny", 2},
                                         std::pair{"storm --set size=tiny --seed 4", 3},
                                         std::pair{"rnn --set size=tiny --set world_size=4", 4},
                                         std::pair{"rl --set size=tiny --set observers=3", 4},
                                         std::pair{"barcode --set size=tiny", 3}));

TEST_F(Record, OfTheRunBeforeIsKept) {
  record("quickstart --set size=tiny --seed 1");
  record("quickstart --set size=tiny --seed 2");
  EXPECT_EQ(files().size(), 4u);
  const std::string name = std::filesystem::path(files().front()).filename();
  const ToolRun before = run_tool("replay " + files().front() + " --json");
  EXPECT_NE(name.find(".previous.record"), std::string::npos) << name;
  EXPECT_EQ(before.json()["seed"], 1);
  const ToolRun checked = run_tool("check " + folder_.string());
  EXPECT_EQ(checked.status, 2);
  EXPECT_NE(checked.err.find("another run"), std::string::npos) << checked.err;
}

TEST_F(Record, FolderWithoutAnyIsRefusedInOneLine) {
  const ToolRun checked = run_tool("check /nowhere/at/all");
  EXPECT_EQ(checked.status, 2);
  EXPECT_EQ(checked.err_lines().size(), 1u) << checked.err;
}

TEST_F(Record, ThatCannotBeReplayedIsRefusedInOneLine) {
  record("quickstart --set size=tiny");
  const std::string good = read_whole_file(files().front());
  const std::string bad = (folder_ / "bad.record").string();
  const auto complaint = [&bad](const std::string& bytes) {
    std::ofstream(bad, std::ios::binary) << bytes;
    const ToolRun run = run_tool("replay " + bad);
    EXPECT_EQ(run.status, 2) << run.out << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(run.err_lines().size(), 1u) << run.err;
    return run.err;
  };
  EXPECT_NE(complaint(good.substr(0, good.size() / 2)).find("is cut short"), std::string::npos);
  EXPECT_NE(complaint(good.substr(0, 20)).find("is cut short"), std::string::npos);
  EXPECT_NE(complaint("nonsense").find("is no file of 'shrink --out'"), std::string::npos);
  EXPECT_NE(complaint("").find("is no file of 'shrink --out'"), std::string::npos);
  std::string damaged = good;
  damaged[8192] = static_cast<char>(damaged[8192] ^ 1);
  EXPECT_NE(complaint(damaged).find("is damaged"), std::string::npos);
}

// The record with another header, as somebody writes it who knows the format: its checksums are
// right.
std::string forged(const std::string& good,
                   const std::function<void(record::RecordHeader&)>& change) {
  record::Preface preface{};
  std::memcpy(&preface, good.data(), sizeof preface);
  record::RecordHeader header =
      record::header_of(good.substr(record::kTextOffset, preface.text_bytes)).value();
  change(header);
  const std::string text = record::text_of(header);
  const std::string ring = good.substr(preface.ring_offset);
  preface.text_bytes = static_cast<uint32_t>(text.size());
  preface.text_checksum = hash_bytes(text.data(), text.size());
  preface.ring_offset = record::kTextOffset + text.size();
  std::string bytes(record::kTextOffset, '\0');
  std::memcpy(bytes.data(), &preface, sizeof preface);
  return bytes + text + ring;
}

TEST_F(Record, OfAForgedHeaderIsRefusedInOneLine) {
  // Goal: a record of this very build makes the tool do nothing but replay a run. Method: commands
  // and flags in place of those of the run, and a rule of the protocol that there is none of;
  // `check` finds the same as `replay`.
  record("quickstart --set size=tiny");
  const std::string good = read_whole_file(file("ps"));
  const std::string bad = file("ps");
  const auto expect_refused = [&](const std::function<void(record::RecordHeader&)>& change,
                                  const std::string& why) {
    std::ofstream(bad, std::ios::binary | std::ios::trunc) << forged(good, change);
    for (const std::string& words : {"replay " + bad, "check " + folder_.string()}) {
      const ToolRun run = run_tool(words);
      EXPECT_EQ(run.status, 2) << words << run.out << run.err;
      EXPECT_EQ(run.out, "");
      EXPECT_EQ(run.err,
                "rehearsal " + words.substr(0, words.find(' ')) + ": " + bad + ": " + why + "\n");
    }
  };
  const auto with = [](const std::vector<std::string>& arguments) {
    return [arguments](record::RecordHeader& header) { header.arguments = arguments; };
  };
  const std::string no_run = "says of no run that it was recorded in";
  const std::string victim = made_.file("victim");
  expect_refused(with({"replay", bad}), no_run);
  expect_refused(with({"check", folder_.string()}), no_run);
  expect_refused(with({"hunt", "quickstart", "--out", victim}), no_run);
  for (const std::string flag : {"--junit", "--spans", "--record", "--compare"})
    expect_refused(with({"run", "quickstart", "--net", "tcp", flag, victim}),
                   "says that it was recorded with '" + flag + "', with which no run is repeated");
  expect_refused(with({"run", "quickstart", "--seed", "x\x1b[2J"}),
                 R"(--seed x\x1b[2J: type a whole number from 0 to 18446744073709551615)");
  expect_refused([](record::RecordHeader& header) { header.node.mutants = {"x"}; },
                 "was recorded without the rule 'x', and this build leaves out none of that name: "
                 "replay it with the program that recorded it");
  EXPECT_FALSE(std::filesystem::exists(victim));
}

TEST_F(Record, ItsReplayEndsWithTheLineThatStartsADebuggerWithItsCommands) {
  record("quickstart --set size=tiny");
  const ToolRun replayed = run_tool("replay " + file("ps"));
  const std::string last = replayed.out_lines().back();
  EXPECT_TRUE(last.starts_with("gdb -x ")) << last;
  EXPECT_NE(last.find("/rehearsal-gdb.py --args "), std::string::npos) << last;
  EXPECT_TRUE(last.ends_with(" replay " + file("ps"))) << last;
}

TEST_F(Record, OfAnotherBuildIsRefusedInOneLine) {
  // Method: a copy of this program with one more byte at its end does the same, and is another.
  record("quickstart --set size=tiny");
  const std::string other = (folder_ / "other").string();
  const std::string complaint = (folder_ / "complaint").string();
  std::filesystem::copy_file(std::filesystem::read_symlink("/proc/self/exe"), other);
  std::ofstream(other, std::ios::binary | std::ios::app) << "x";
  const std::string command = std::string(kToolVariable) + "=1 " + other + " replay " + file("ps") +
                              " >" + complaint + " 2>&1";
  const int status = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << status;
  const std::string text = read_whole_file(complaint);
  EXPECT_TRUE(text.starts_with("other replay: " + file("ps") + ": was recorded by another build ("))
      << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST_F(Record, ThatIsTooSmallSaysHowLargeItShouldBe) {
  const ToolRun run = run_tool(
      "run quickstart --set size=tiny --net tcp --record-size 4K --record " + folder_.string());
  ASSERT_EQ(run.status, 0) << run.err;
  const ToolRun replayed = run_tool("replay " + files().front());
  EXPECT_EQ(replayed.status, 2);
  EXPECT_NE(replayed.err.find("has lost its beginning"), std::string::npos) << replayed.err;
  EXPECT_NE(replayed.err.find("--record-size"), std::string::npos) << replayed.err;
}

TEST_F(Record, IsWrittenWhereTheEnvironmentSays) {
  const ToolRun run =
      run_tool("run quickstart --set size=tiny --net tcp",
               "REHEARSAL_RECORD=" + folder_.string() + " REHEARSAL_RECORD_SIZE=1M");
  ASSERT_EQ(run.status, 0) << run.err;
  ASSERT_EQ(files().size(), 2u);
  EXPECT_LT(std::filesystem::file_size(files().front()), (1u << 20) + 16'384);
  EXPECT_EQ(run_tool("replay " + files().back()).status, 0);
}

TEST(RecordFlags, ThatDoNotFitAreWrongUse) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"run quickstart --record x", "--record x needs --net tcp"},
      {"run quickstart --net tcp --record x --record-size 3", "--record-size 3: type a size"},
      {"run quickstart --net tcp --record x --record-size 5G", "--record-size 5G: type a size"},
      {"worker quickstart --record-size -1", "--record-size"},
      {"worker quickstart --rank 0 --world-size 2 --rendezvous file:///tmp/unused --record "
       "/proc/none",
       "the folder /proc/none cannot hold a record"}};
  for (const auto& [arguments, text] : wrong) {
    const ToolRun run = run_tool(arguments);
    EXPECT_EQ(run.status, 2) << arguments << run.err;
    EXPECT_EQ(run.err_lines().size(), 1u) << run.err;
    EXPECT_NE(run.err.find(text), std::string::npos) << run.err;
  }
}

}  // namespace
}  // namespace rehearsal::command_line
