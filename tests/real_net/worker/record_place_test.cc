#include "real_net/worker/record_place.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "tests/temporary_folder.h"

namespace rehearsal::real {
namespace {

class RecordPlaces : public testing::Test {
 protected:
  Result<std::optional<record::RecordOptions>> options(const RecordPlace& place,
                                                       const std::string& worker) const {
    return record_options(
        place,
        [this](const std::string& name) {
          const auto found = variables_.find(name);
          return found == variables_.end() ? std::nullopt : std::optional(found->second);
        },
        worker);
  }
  std::string folder() const { return folder_.string(); }

  const TemporaryFolder made_;
  const std::filesystem::path folder_ = made_.file("records");
  std::map<std::string, std::string> variables_;
};

TEST_F(RecordPlaces, NothingIsRecordedUnlessAFolderIsNamed) {
  EXPECT_EQ(options({}, "ps").or_throw(), std::nullopt);
  variables_["REHEARSAL_RECORD_SIZE"] = "64M";
  EXPECT_EQ(options({}, "ps").or_throw(), std::nullopt);
}

TEST_F(RecordPlaces, FlagsWinOverTheEnvironment) {
  variables_["REHEARSAL_RECORD"] = folder();
  variables_["REHEARSAL_RECORD_SIZE"] = "64M";
  const auto from_variables = *options({.arguments = {"run"}}, "ps").or_throw();
  EXPECT_EQ(from_variables.file, folder() + "/ps.record");
  EXPECT_EQ(from_variables.ring_bytes, uint64_t{64} << 20);
  EXPECT_EQ(from_variables.arguments, (std::vector<std::string>{"run"}));
  const auto from_flags = *options({.folder = folder() + "/x", .bytes = 4096}, "a/b").or_throw();
  EXPECT_EQ(from_flags.file, folder() + "/x/a_b.record");
  EXPECT_EQ(from_flags.ring_bytes, 4096u);
  EXPECT_TRUE(std::filesystem::is_directory(folder_ / "x"));
}

TEST_F(RecordPlaces, TheRecordBeforeIsKeptAndTheOneBeforeThatIsNot) {
  const std::string file = folder() + "/ps.record";
  for (const char* content : {"first", "second", "third"}) {
    EXPECT_EQ(options({.folder = folder()}, "ps").or_throw()->file, file);
    EXPECT_FALSE(std::filesystem::exists(file));
    std::ofstream(file) << content;
  }
  std::string kept;
  std::ifstream(folder() + "/ps.previous.record") >> kept;
  EXPECT_EQ(kept, "second");
}

TEST_F(RecordPlaces, WhatCannotBeIsRefused) {
  std::ofstream(folder_) << "a file";
  auto no_folder = options({.folder = folder()}, "ps");
  ASSERT_FALSE(no_folder.ok());
  EXPECT_TRUE(
      no_folder.error().text.starts_with("the folder " + folder() + " cannot hold a record: "));
  variables_["REHEARSAL_RECORD_SIZE"] = "much";
  auto no_size = options({.folder = folder()}, "ps");
  ASSERT_FALSE(no_size.ok());
  EXPECT_EQ(no_size.error().text,
            "REHEARSAL_RECORD_SIZE=much: type a size from 4K to 4G, for example 64M");
}

TEST(RecordSize, IsANumberWithAUnit) {
  EXPECT_EQ(parse_record_size("4096"), 4096u);
  EXPECT_EQ(parse_record_size("4K"), 4096u);
  EXPECT_EQ(parse_record_size("3M"), uint64_t{3} << 20);
  EXPECT_EQ(parse_record_size("4G"), uint64_t{4} << 30);
  for (const char* wrong :
       {"", "K", "4095", "3K", "5G", "-1", "1.5M", "64MB", "0x10", "1T", "99999999999999999999"})
    EXPECT_EQ(parse_record_size(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace rehearsal::real
