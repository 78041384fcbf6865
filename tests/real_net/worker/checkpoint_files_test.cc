#include "real_net/worker/checkpoint_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/temporary_folder.h"

namespace rehearsal::real {
namespace {

class CheckpointFilesTest : public ::testing::Test {
 protected:
  const TemporaryFolder made;
  const std::string folder = made.path().string();
};

TEST_F(CheckpointFilesTest, WhatIsSavedIsThereForALaterLife) {
  const std::string bytes("a\0b\n", 4);
  {
    CheckpointFiles files(folder, "ps");
    EXPECT_TRUE(files.load("model").value() == std::nullopt);
    EXPECT_TRUE(files.save("model", "old").ok());
    EXPECT_TRUE(files.save("model", bytes).ok());
    EXPECT_TRUE(files.save("empty", "").ok());
  }
  CheckpointFiles files(folder, "ps");
  EXPECT_EQ(files.load("model").value(), bytes);
  EXPECT_EQ(files.load("empty").value(), "");
  EXPECT_EQ(CheckpointFiles(folder, "trainer").load("model").value(), std::nullopt);
  EXPECT_TRUE(std::filesystem::exists(folder + "/ps/model.pt"));
}

TEST_F(CheckpointFilesTest, OnAFullDiskWhatWasThereStaysAndNothingElseIsLeft) {
  // Goal: the error names file and cause, the last checkpoint is whole, and no part of the new one
  // takes up room. Method: a limit of what this process may write, which the new one exceeds.
  CheckpointFiles files(folder, "ps");
  ASSERT_TRUE(files.save("model", "old").ok());
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 1 << 16, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const Status saved = files.save("model", std::string(1 << 20, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.error().text,
            "cannot write " + folder + "/ps/.model.unfinished: " + std::strerror(EFBIG));
  EXPECT_EQ(files.load("model").value(), "old");
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/ps"))
    left.push_back(entry.path().filename());
  EXPECT_EQ(left, std::vector<std::string>{"model.pt"});
}

TEST_F(CheckpointFilesTest, SavesOfOneNameSideBySideAreEachWhole) {
  // Goal: functions that are served save from several threads. Method: each saves its own letter,
  // many times; every save succeeds, and what is there is always that of one.
  CheckpointFiles files(folder, "ps");
  std::vector<std::thread> threads;
  std::atomic<int> failed = 0;
  for (const char letter : {'a', 'b', 'c'})
    threads.emplace_back([&files, &failed, letter] {
      const std::string bytes(200'000, letter);
      for (int i = 0; i < 20; ++i) {
        if (!files.save("model", bytes).ok()) ++failed;
        const std::string found = files.load("model").value().value();
        if (found != std::string(200'000, found.front())) ++failed;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
}

TEST_F(CheckpointFilesTest, AnUnfinishedSaveIsNotSeen) {
  // As a crash in the middle of writing leaves it.
  CheckpointFiles files(folder, "ps");
  EXPECT_TRUE(files.save("model", "whole").ok());
  std::ofstream(folder + "/ps/.model.unfinished") << "ha";
  EXPECT_EQ(files.load("model").value(), "whole");
  EXPECT_TRUE(files.save("model", "next").ok());
  EXPECT_EQ(files.load("model").value(), "next");
}

TEST_F(CheckpointFilesTest, WhatCannotBeWrittenOrReadIsAnError) {
  std::ofstream(folder + "/ps") << "a file where the folder should be";
  CheckpointFiles files(folder, "ps");
  const Status saved = files.save("model", "bytes");
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.error().kind, ErrorKind::storage);
  EXPECT_NE(saved.error().text.find(folder + "/ps"), std::string::npos) << saved.error().text;
  std::filesystem::create_directories(folder + "/other/model.pt");
  EXPECT_FALSE(CheckpointFiles(folder, "other").load("model").ok());
}

TEST(CheckpointFiles, WithoutAFolderItSaysWhatToDo) {
  CheckpointFiles files("", "ps");
  EXPECT_NE(files.save("model", "bytes").error().text.find("--checkpoints FOLDER"),
            std::string::npos);
  EXPECT_EQ(files.load("model").error().kind, ErrorKind::storage);
}

}  // namespace
}  // namespace rehearsal::real
