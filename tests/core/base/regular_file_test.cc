#include "core/base/regular_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/temporary_folder.h"

namespace rehearsal {
namespace {

constexpr const char* kNoFile = "it is no file: a pipe, a device or a socket";

std::string refusal_of(const std::string& path, uint64_t bytes_max = 100) {
  Result<std::string> bytes = read_regular(path, bytes_max);
  return bytes.ok() ? "" : bytes.error().text;
}

TEST(RegularFile, IsReadToItsLastByte) {
  // Goal: every byte, of none, of a few, of more than a piece. Method: files of these sizes.
  const TemporaryFolder folder;
  const std::string path = folder.file("some");
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{65'536}, size_t{65'537}, size_t{300'000}}) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 / 3);
    std::ofstream(path, std::ios::binary) << bytes;
    EXPECT_EQ(read_regular(path, size).or_throw(), bytes) << size;
  }
}

TEST(RegularFile, ThatSaysNoSizeIsReadAsWell) {
  // Goal: files of the system's own are files. Method: one whose size the system gives as 0.
  EXPECT_TRUE(read_regular("/proc/version", 100'000).or_throw().starts_with("Linux version "));
}

TEST(RegularFile, OfWhichThereIsNoneOrThatIsSomethingElseIsRefusedAtOnce) {
  // Goal: the cause, and no wait. Method: a pipe that nobody writes, a device without an end.
  const TemporaryFolder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(refusal_of(pipe), kNoFile);
  EXPECT_EQ(refusal_of("/dev/zero"), kNoFile);
  EXPECT_EQ(refusal_of(folder.path().string()), "it is a folder");
  EXPECT_EQ(refusal_of(folder.file("none")), "No such file or directory");
  EXPECT_FALSE(open_regular(pipe).ok());
  std::filesystem::create_symlink("/dev/zero", folder.file("link"));
  EXPECT_EQ(refusal_of(folder.file("link")), kNoFile);
}

TEST(RegularFile, OfMoreBytesThanAllowedIsRefusedBeforeTheyAreRead) {
  // Goal: no memory for what is refused. Method: the byte beyond the limit; a hole of 64 GiB.
  const TemporaryFolder folder;
  const std::string path = folder.file("large");
  std::ofstream(path) << std::string(101, 'x');
  EXPECT_EQ(refusal_of(path), "it has more than 100 bytes");
  EXPECT_EQ(refusal_of(path, 101), "");
  std::filesystem::resize_file(path, uint64_t{1} << 36);
  EXPECT_EQ(refusal_of(path), "it has more than 100 bytes");
}

}  // namespace
}  // namespace rehearsal
