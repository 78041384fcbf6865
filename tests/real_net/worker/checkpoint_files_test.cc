#include "real_net/worker/checkpoint_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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
  static std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

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
  EXPECT_EQ(saved.error().text, "cannot write " + folder + "/ps/model.pt: " + std::strerror(EFBIG));
  EXPECT_EQ(files.load("model").value(), "old");
  EXPECT_EQ(names_in(folder + "/ps"), std::vector<std::string>{"model.pt"});
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

TEST_F(CheckpointFilesTest, SavesOfTwoLivesSideBySideAreEachWhole) {
  // Goal: a life that was given up and still runs mixes no bytes with those of the next one.
  // Method: each has its own files in one folder, as each has in its own process, and begins anew
  // again and again: the next one must not remove what the other is writing.
  std::vector<std::thread> lives;
  std::atomic<int> failed = 0;
  for (const char letter : {'a', 'b', 'c'})
    lives.emplace_back([this, &failed, letter] {
      const std::string bytes(200'000, letter);
      for (int i = 0; i < 20; ++i) {
        CheckpointFiles files(folder, "ps");
        if (!files.save("model", bytes).ok()) ++failed;
        const std::string found = files.load("model").value().value();
        if (found != std::string(200'000, found.front())) ++failed;
      }
    });
  for (std::thread& life : lives) life.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(names_in(folder + "/ps"), std::vector<std::string>{"model.pt"});
}

TEST_F(CheckpointFilesTest, AnUnfinishedSaveIsNotSeenAndGoesWithTheLifeThatMadeIt) {
  // Goal: crashes in the middle of writing do not fill the disk. Method: two files as such a crash
  // leaves them, of which one is still locked by whoever writes it.
  std::filesystem::create_directories(folder + "/ps");
  std::ofstream(folder + "/ps/model.pt") << "whole";
  std::ofstream(folder + "/ps/.model.1.1.unfinished") << "ha";
  std::ofstream(folder + "/ps/.model.1.2.unfinished") << "hal";
  const int writes = open((folder + "/ps/.model.1.2.unfinished").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(flock(writes, LOCK_EX), 0);
  CheckpointFiles files(folder, "ps");
  EXPECT_EQ(files.load("model").value(), "whole");
  EXPECT_TRUE(files.save("model", "next").ok());
  EXPECT_EQ(files.load("model").value(), "next");
  EXPECT_EQ(names_in(folder + "/ps"),
            (std::vector<std::string>{".model.1.2.unfinished", "model.pt"}));
  close(writes);
}

TEST_F(CheckpointFilesTest, ASaveThatCannotGetItsNameLeavesNothing) {
  // Method: a folder has the name.
  std::filesystem::create_directories(folder + "/ps/model.pt/inside");
  CheckpointFiles files(folder, "ps");
  const Status saved = files.save("model", "bytes");
  ASSERT_FALSE(saved.ok());
  EXPECT_TRUE(saved.error().text.starts_with("cannot write " + folder + "/ps/model.pt: "))
      << saved.error().text;
  EXPECT_EQ(names_in(folder + "/ps"), std::vector<std::string>{"model.pt"});
}

TEST_F(CheckpointFilesTest, APipeOrADeviceIsNoCheckpoint) {
  // Goal: nobody waits for a pipe, and no memory is taken without end. Method: a pipe that nobody
  // writes into, and a link to /dev/zero, in the place of files.
  std::filesystem::create_directories(folder + "/ps");
  ASSERT_EQ(mkfifo((folder + "/ps/pipe.pt").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", folder + "/ps/zero.pt");
  CheckpointFiles files(folder, "ps");
  for (const std::string name : {"pipe", "zero"}) {
    const auto loaded = files.load(name);
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().kind, ErrorKind::storage);
    EXPECT_TRUE(loaded.error().text.starts_with("cannot read " + folder + "/ps/" + name +
                                                ".pt: it is no file"))
        << loaded.error().text;
  }
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
