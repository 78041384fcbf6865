// Goal: a process that keeps the file of the rendezvous locked, because it was stopped in the
// middle of reading it, keeps no worker for longer than its patience. Method: the test locks the
// file.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

#include "real_net/worker/bounded.h"
#include "real_net/worker/meeting_store.h"
#include "tests/real_net/support/file_lock.h"
#include "tests/temporary_folder.h"

namespace rehearsal::real {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class LockedFile : public testing::Test {
 protected:
  [[nodiscard]] Result<std::unique_ptr<MeetingStore>> open(Patience& patience) const {
    Placement placement;
    placement.file = path_;
    return MeetingStore::open(placement, {"ps", "trainer"}, Seal(Auth{}), patience);
  }
  const TemporaryFolder folder_;
  const std::string path_ = folder_.file("meeting");
};

TEST_F(LockedFile, IsToldByAWorkerThatWouldOpenIt) {
  const FileLock lock(path_);
  Patience patience(milliseconds(300), seconds(60), nullptr);
  const auto opened = open(patience);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().kind, ErrorKind::timeout);
  EXPECT_EQ(opened.error().text,
            path_ +
                " cannot be opened in time: a process that is stopped, or that hangs, keeps the "
                "file locked (lsof names it)");
}

TEST_F(LockedFile, IsToldByAWorkerThatAsksAndThenKeepsItNot) {
  // Goal: that worker ends, too. Method: it gives the store up while the file is locked.
  Patience patience(milliseconds(300), seconds(60), nullptr);
  std::shared_ptr<MeetingStore> store = open(patience).or_throw();
  store->set_patience(&patience);
  store->set("key", "text");
  const FileLock lock(path_);
  try {
    (void)store->get("key");
    ADD_FAILURE() << "a locked file was read";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(),
                 "it does not answer: a process that is stopped, or that hangs, keeps the file "
                 "locked (lsof names it)");
  }
  const std::function<bool()> end = [store = std::move(store)]() mutable {
    store.reset();
    return true;
  };
  EXPECT_TRUE(within(std::chrono::steady_clock::now() + seconds(60), end).has_value());
}

}  // namespace
}  // namespace rehearsal::real
