// Goal: whoever can write to the store, and has not the secret, sends no worker anywhere. Method:
// the record of a worker that has yet to come is one that the test has written past the seal.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>

// The wheel is built with it, and c10d's headers ask for it.
#define USE_DISTRIBUTED
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "real_net/worker/rendezvous.h"
#include "tests/temporary_folder.h"

namespace rehearsal::real {
namespace {

class SealedStore : public testing::Test {
 protected:
  SealedStore()
      : raw_(c10::make_intrusive<c10d::PrefixStore>(
            "rehearsal/", c10::make_intrusive<c10d::FileStore>(path_, -1))) {
    options_.placement.file = path_;
    options_.names = {"ps", "trainer"};
    options_.auth = {.kind = Auth::Kind::secret, .secret = "the secret of this group"};
  }
  // The worker with rank 0 waits for the other one, when it has left its own record.
  void begin() {
    rendezvous_ = std::make_unique<Rendezvous>(options_);
    met_ = std::async(std::launch::async, [this]() -> Result<Members> {
      const Result<uint32_t> life = rendezvous_->enter();
      if (!life.ok()) return life.error();
      return rendezvous_->meet(record("ps"));
    });
    raw_->wait({"group0/members/0"});
  }
  [[nodiscard]] MemberRecord record(const std::string& name) const {
    return {
        .name = name, .address = local_address(listening_), .incarnation = {1000}, .world_size = 2};
  }
  void expect_refused(const std::string& why) {
    const Result<Members> members = met_.get();
    ASSERT_FALSE(members.ok());
    EXPECT_EQ(members.error().kind, ErrorKind::bad_arguments);
    EXPECT_NE(members.error().text.find(why + ": give all the same (--auth)"), std::string::npos)
        << members.error().text;
    EXPECT_FALSE(wait_readable(listening_.get(), std::chrono::steady_clock::now()))
        << "somebody has connected";
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.file("store");
  const FileDescriptor listening_ = listen_on({.host = "127.0.0.1", .port = 0}).or_throw();
  const c10::intrusive_ptr<c10d::Store> raw_;
  RendezvousOptions options_;
  std::unique_ptr<Rendezvous> rendezvous_;
  std::future<Result<Members>> met_;
};

TEST_F(SealedStore, ARecordWithoutASealIsNotRead) {
  begin();
  raw_->set("group0/members/1", encode(record("trainer")) + "O");
  expect_refused("this worker has a secret, and somebody there has none");
}

TEST_F(SealedStore, ASealedRecordIsNotReadAtAnotherPlace) {
  begin();
  const std::vector<uint8_t> sealed = raw_->get("group0/members/0");
  ASSERT_EQ(sealed.back(), 'S');
  raw_->set("group0/members/1", sealed);
  expect_refused("somebody there has another secret than this worker");
}

}  // namespace
}  // namespace rehearsal::real
