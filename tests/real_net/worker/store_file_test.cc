// Goal: a file in which no group can meet is told at once, by its name and why, and stays as it is;
// nobody reads it for ever. Method: what stands in its place is something else, or a store that
// ends within an entry, as a worker that is killed while it writes leaves it.
#include "real_net/worker/store_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <stdexcept>

#include "real_net/worker/bounded.h"
#include "real_net/worker/meeting_store.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::real {
namespace {

using std::chrono::seconds;

class StoreFileTest : public testing::Test {
 protected:
  // It is one worker of three that opens it: so it leaves the file.
  static Result<std::unique_ptr<MeetingStore>> open_store_at(const std::string& path) {
    Placement placement;
    placement.file = path;
    Patience patience(std::chrono::minutes(5), seconds(60), nullptr);
    return MeetingStore::open(placement, {"ps", "trainer", "observer"}, Seal(Auth{}), patience);
  }
  void expect_refused(const std::string& path, const std::string& why) {
    const auto opened = open_store_at(path);
    ASSERT_FALSE(opened.ok()) << path;
    EXPECT_EQ(opened.error().kind, ErrorKind::bad_arguments);
    EXPECT_TRUE(
        opened.error().text.starts_with("the file of the rendezvous, '" + path + "': " + why))
        << opened.error().text;
  }
  const TemporaryFolder folder_;
};

constexpr char kCutShort[] = "it ends within an entry";

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Where the entries of a store end.
std::set<size_t> ends_of_entries(const std::string& bytes) {
  std::set<size_t> ends = {0};
  for (size_t at = 0; at < bytes.size(); ends.insert(at)) {
    for (int part = 0; part < 2; ++part) {
      uint32_t length = 0;
      std::memcpy(&length, bytes.data() + at, sizeof length);
      at += sizeof length + length;
    }
  }
  return ends;
}

TEST_F(StoreFileTest, AFolderThatIsNotThereIsNamed) {
  expect_refused(folder_.file("no/such/folder"), "its folder: No such file or directory; make it");
}

TEST_F(StoreFileTest, WhatIsNoFileIsNamed) {
  expect_refused(folder_.path().string(), "it is a folder, a pipe or a device");
  const std::string pipe = folder_.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expect_refused(pipe, "it is a folder, a pipe or a device");
  const std::string file = folder_.file("file");
  write_bytes(file, "");
  expect_refused(file + "/below", "Not a directory");
}

TEST_F(StoreFileTest, AFileOfAnotherKindIsRefusedAndStaysAsItIs) {
  // Method: text, whose first letters are a length of 1.9 GB; a length of 4 GiB; zeros.
  for (const std::string& bytes : {std::string("root:x:0:0:root:/root:/bin/bash\n"),
                                   std::string(400, '\xff'), std::string(400, '\0')}) {
    const std::string path = folder_.file("other");
    write_bytes(path, bytes);
    expect_refused(path, kCutShort);
    EXPECT_EQ(read_whole_file(path), bytes);
  }
}

TEST_F(StoreFileTest, AStoreThatEndsWithinAnEntryIsRefused) {
  // Method: a store with a few keys, cut at each of its bytes; at the end of an entry it is whole.
  const std::string path = folder_.file("meeting");
  {
    const auto store = open_store_at(path).or_throw();
    store->set("key", "text");
    EXPECT_EQ(store->add("counter", 3), 3);
    EXPECT_TRUE(store->erase("key"));
  }
  const std::string bytes = read_whole_file(path);
  const std::set<size_t> ends = ends_of_entries(bytes);
  ASSERT_GE(ends.size(), 4u);
  ASSERT_EQ(*ends.rbegin(), bytes.size());
  for (size_t left = 0; left <= bytes.size(); ++left) {
    const std::string cut = folder_.file("cut");
    write_bytes(cut, bytes.substr(0, left));
    const Status whole = StoreFile(cut).check();
    EXPECT_EQ(whole.ok(), ends.contains(left)) << left;
    if (left == bytes.size() - 1) expect_refused(cut, kCutShort);
  }
}

TEST_F(StoreFileTest, AStoreThatIsCutShortLaterIsToldByWhoAsksNext) {
  // Goal: the others hear why, and end. Method: half an entry is written while the store is open.
  const std::string path = folder_.file("meeting");
  std::shared_ptr<MeetingStore> store = open_store_at(path).or_throw();
  store->set("key", "text");
  EXPECT_EQ(store->get("key"), "text");
  std::ofstream(path, std::ios::binary | std::ios::app) << std::string("\x05\0\0\0/k", 6);
  try {
    (void)store->get("key");
    ADD_FAILURE() << "a store that is cut short was read";
  } catch (const std::runtime_error& error) {
    EXPECT_TRUE(std::string(error.what())
                    .starts_with("the file of the rendezvous, '" + path + "': " + kCutShort))
        << error.what();
  }
  const std::function<bool()> end = [store = std::move(store)]() mutable {
    store.reset();
    return true;
  };
  EXPECT_TRUE(within(std::chrono::steady_clock::now() + seconds(60), end).has_value());
}

}  // namespace
}  // namespace rehearsal::real
