#include "real_net/worker/checkpoint_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace rehearsal::real {
namespace {

class CheckpointFilesTest : public ::testing::Test {
 protected:
  CheckpointFilesTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "checkpoints-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << pattern;
    folder = pattern;
  }
  ~CheckpointFilesTest() override { std::filesystem::remove_all(folder); }

  std::string folder;
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
