// Goal: a file that is written at once is the old one or the new one, nothing is left beside it,
// and an error names file and cause. Method: files and folders of every kind, and a limit of what
// this process may write.
#include "record/whole_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::record {
namespace {

class WholeFile : public testing::Test {
 protected:
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename());
    return names;
  }

  const TemporaryFolder folder_;
  const std::string file_ = folder_.file("some");
};

std::string text_of_error(const Status& status) { return status.ok() ? "" : status.error().text; }

TEST_F(WholeFile, IsMadeAndThenReplacedWithTheSameRights) {
  EXPECT_EQ(text_of_error(write_whole_file(file_, "first")), "");
  EXPECT_EQ(read_whole_file(file_), "first");
  ASSERT_EQ(chmod(file_.c_str(), 0640), 0);
  std::ifstream earlier(file_);
  EXPECT_EQ(text_of_error(write_whole_file(file_, std::string(100'000, 'x'))), "");
  EXPECT_EQ(read_whole_file(file_), std::string(100'000, 'x'));
  struct stat status {};
  ASSERT_EQ(stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
  // A reader that has it open reads on in what it has opened.
  std::string word;
  earlier >> word;
  EXPECT_EQ(word, "first");
  EXPECT_EQ(files(), std::vector<std::string>{"some"});
}

TEST_F(WholeFile, OnAFullDiskIsWhatItWasAndNothingElseIsLeft) {
  ASSERT_TRUE(write_whole_file(file_, "old").ok());
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 1 << 16, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const Status written = write_whole_file(file_, std::string(1 << 20, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  EXPECT_EQ(text_of_error(written), file_ + ": cannot be written: File too large");
  EXPECT_EQ(read_whole_file(file_), "old");
  EXPECT_EQ(files(), std::vector<std::string>{"some"});
}

TEST_F(WholeFile, ThatCannotBeWrittenIsNamedWithTheCause) {
  ASSERT_TRUE(write_whole_file(file_, "old").ok());
  const std::vector<std::pair<std::string, std::string>> cases = {
      {folder_.file("no/such"), "No such file or directory"},
      {file_ + "/below", "Not a directory"},
      {folder_.path().string(), "Is a directory"}};
  for (const auto& [path, cause] : cases) {
    EXPECT_EQ(text_of_error(write_whole_file(path, "new")), path + ": cannot be written: " + cause);
    EXPECT_EQ(text_of_error(check_whole_file(path)), path + ": cannot be written: " + cause);
  }
  EXPECT_EQ(text_of_error(write_whole_file("/dev/full", "new")),
            "/dev/full: cannot be written: No space left on device");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  EXPECT_EQ(files(), std::vector<std::string>{"some"});
}

TEST_F(WholeFile, BehindALinkIsWrittenInPlaceAndTheLinkStays) {
  const std::string link = folder_.file("link");
  std::filesystem::create_symlink(file_, link);
  for (const std::string text : {"first", "second"}) {
    EXPECT_EQ(text_of_error(write_whole_file(link, text)), "");
    EXPECT_EQ(read_whole_file(file_), text);
  }
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

TEST_F(WholeFile, OfAKilledProcessIsInNobodysWay) {
  // Method: the name that this process tries first is taken.
  const std::string left = folder_.file(".unfinished-" + std::to_string(getpid()) + "-0");
  std::ofstream(left) << "half";
  EXPECT_EQ(text_of_error(write_whole_file(file_, "whole")), "");
  EXPECT_EQ(read_whole_file(file_), "whole");
  EXPECT_EQ(read_whole_file(left), "half");
}

TEST_F(WholeFile, IsOnlyLookedAtByTheCheck) {
  EXPECT_EQ(text_of_error(check_whole_file(file_)), "");
  EXPECT_TRUE(files().empty());
  ASSERT_TRUE(write_whole_file(file_, "old").ok());
  EXPECT_EQ(text_of_error(check_whole_file(file_)), "");
  EXPECT_EQ(read_whole_file(file_), "old");
  EXPECT_EQ(files(), std::vector<std::string>{"some"});
}

}  // namespace
}  // namespace rehearsal::record
