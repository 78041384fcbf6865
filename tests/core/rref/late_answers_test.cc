#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/rref/rref_fixture.h"

namespace rehearsal {
namespace {

using std::chrono::milliseconds;

// Answers that come when nobody waits for them any more, or when somebody has waited for long.
class LateAnswersTest : public RRefFixture {
 protected:
  // A reference to a value of b that c holds as well.
  RRef<Counter> made_and_kept_by_c() {
    begin();
    RRef<Counter> rref = a().calls.remote<Counter>("b", 5);
    (void)a().calls.rpc_async("c", &keep, rref);
    deliver_all();
    return rref;
  }
};

TEST_F(LateAnswersTest, AResultThatNobodyWaitsForReleasesItsReferences) {
  // Goal: a reference in a result is registered and released like any other, so that it does not
  // pin its parent for ever. Method: c's answer is held back until a has given up.
  (void)made_and_kept_by_c();
  const auto given = a().calls.with_timeout(milliseconds(10)).rpc_async("c", &give);
  deliver("a>c Call");
  const auto response = hold("c>a Response");
  world.advance(milliseconds(10));
  EXPECT_EQ(given.result().error().kind, ErrorKind::timeout);
  EXPECT_EQ(c().rrefs.pending_child_count(), 1u);
  put_back(response);
  deliver_all();
  EXPECT_EQ(c().rrefs.pending_child_count(), 0u);
  EXPECT_EQ(a().rrefs.user_count(), 0u);
  stage_.kept.clear();
  deliver_all();
  expect_nothing_left();
}

TEST_F(LateAnswersTest, WhoFetchesHearsOfAFailedCreationBeforeAndAfter) {
  // Goal: the error stands for the value. Method: one fetch waits when the function fails, another
  // one comes later.
  begin(2);
  const RRef<int64_t> rref = a().calls.remote("b", &fail, 3);
  const Future<int64_t> early = rref.to_here_async();
  put_back(hold("a>b Call"));
  network.deliver(network.in_flight().size() - 1);
  put_back(hold("a>b Call"));
  network.deliver(network.in_flight().size() - 1);
  EXPECT_FALSE(early.ready());
  EXPECT_TRUE(stage_.log.empty());
  deliver_all();
  ASSERT_TRUE(early.ready());
  EXPECT_EQ(early.result().error().kind, ErrorKind::remote_exception);
  const Future<int64_t> late = rref.to_here_async();
  deliver_all();
  EXPECT_EQ(late.result().error().text, early.result().error().text);
  EXPECT_NE(late.result().error().text.find("no 3"), std::string::npos);
}

TEST_F(LateAnswersTest, ACreationThatWaitsForRoomLeavesThoughItsTimeIsOver) {
  // Goal: a creation is never withdrawn: its reference may have been passed on. Method: the window
  // is full until its time is over; then it has room.
  window_frames = 2;
  begin(2);
  for (int i = 0; i < 2; ++i) (void)a().calls.rpc_async("b", &answer, i);
  {
    const RRef<Counter> rref = a().calls.with_timeout(milliseconds(1)).remote<Counter>("b", 5);
    world.advance(milliseconds(1));
    EXPECT_EQ(a().trace.marked("a creation timed out"), 1u);
    EXPECT_EQ(rref.rpc_async(&Counter::get).result().error().kind, ErrorKind::timeout);
    deliver_all();
    EXPECT_EQ(b().rrefs.owner_count(), 1u);
    EXPECT_EQ(stage_.alive, 1);
  }
  deliver_all();
  expect_nothing_left();
}

TEST_F(LateAnswersTest, AtTheEndReceivedReferencesAreReleasedToo) {
  // Goal: a shutdown releases what a worker was given, not only what it has made. Method: c still
  // holds what a gave it.
  (void)made_and_kept_by_c();
  deliver_all();
  EXPECT_EQ(b().rrefs.fork_count(), 1u);
  std::vector<std::string> lines;
  c().runtime->post([&] { lines = c().rrefs.release_all(); });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("'c' holds a reference to a value of 'b', which came from 'a': "),
            std::string::npos);
  deliver_all();
  expect_nothing_left();
}

}  // namespace
}  // namespace rehearsal
