#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/future.h"
#include "core/base/future_groups.h"
#include "tests/core/base/node_strand_fixture.h"

namespace rehearsal {
namespace {

class FutureCancelTest : public NodeStrandFixture {
 protected:
  static ErrorKind kind_of(const Future<int>& future) { return future.result().error().kind; }

  Promise<int> promise_{strand_};
  const Future<int> future_ = promise_.future();
};

TEST_F(FutureCancelTest, CompletesItOnce) {
  future_.cancel();
  EXPECT_TRUE(future_.ready());
  EXPECT_EQ(kind_of(future_), ErrorKind::cancelled);
  EXPECT_FALSE(future_.result().error().worker.empty());
  promise_.complete(3);
  future_.cancel();
  EXPECT_EQ(kind_of(future_), ErrorKind::cancelled);
}

TEST_F(FutureCancelTest, LeavesAValueThatIsThere) {
  promise_.complete(5);
  future_.cancel();
  EXPECT_EQ(future_.wait(), 5);
}

TEST_F(FutureCancelTest, AsksWhoeverMakesTheValueToGiveUpOnceAndForTheReason) {
  int asked = 0;
  future_.state()->set_canceller([&asked] {
    ++asked;
    return Error{.kind = ErrorKind::cancelled, .text = "given up", .worker = "ps"};
  });
  future_.cancel();
  future_.cancel();
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(future_.result().error().text, "given up");
}

TEST_F(FutureCancelTest, ReachesThroughAChainToItsSource) {
  // A body that takes a value is skipped; one that takes a result always runs, and changes nothing.
  std::vector<std::string> ran;
  const Future<int> next = future_.then([&](int value) {
    ran.push_back("value");
    return value;
  });
  const Future<int> last = next.then([&](const Result<int>& result) {
    ran.push_back(std::string(name_of(result.error().kind)));
    return 7;
  });
  last.cancel();
  EXPECT_EQ(kind_of(future_), ErrorKind::cancelled);
  EXPECT_EQ(kind_of(next), ErrorKind::cancelled);
  EXPECT_EQ(kind_of(last), ErrorKind::cancelled);
  EXPECT_EQ(ran, std::vector<std::string>{"cancelled"});
}

TEST_F(FutureCancelTest, ReachesTheFutureThatABodyReturned) {
  const Promise<int> inner(strand_);
  const Future<int> next = future_.then([&](int) { return inner.future(); });
  promise_.complete(1);
  next.cancel();
  EXPECT_EQ(kind_of(inner.future()), ErrorKind::cancelled);
  EXPECT_EQ(kind_of(next), ErrorKind::cancelled);
  EXPECT_EQ(future_.wait(), 1);
}

TEST_F(FutureCancelTest, ReachesAllThatAreGathered) {
  const Promise<int> done(strand_);
  const Promise<int> other(strand_);
  const Future<std::vector<int>> all = when_all<int>({future_, done.future(), other.future()});
  done.complete(2);
  all.cancel();
  EXPECT_EQ(all.result().error().kind, ErrorKind::cancelled);
  EXPECT_EQ(kind_of(future_), ErrorKind::cancelled);
  EXPECT_EQ(done.future().wait(), 2);
  EXPECT_EQ(kind_of(other.future()), ErrorKind::cancelled);
}

TEST_F(FutureCancelTest, AFollowerOutlivesWhatItFollowed) {
  // Its source is complete and forgotten when it is cancelled.
  const Promise<int> inner(strand_);
  Future<int> next;
  {
    const Promise<int> source(strand_);
    next = source.future().then([&](int) { return inner.future(); });
    source.complete(1);
  }
  next.cancel();
  EXPECT_EQ(kind_of(next), ErrorKind::cancelled);
  inner.complete(4);
  EXPECT_EQ(kind_of(next), ErrorKind::cancelled);
}

}  // namespace
}  // namespace rehearsal
