#include "core/base/failing_calls.h"

#include <gtest/gtest.h>

namespace rehearsal {
namespace {

using std::chrono::milliseconds;

constexpr WorkerId kPs{1};
constexpr WorkerId kStore{2};

class FailingCallsTest : public testing::Test {
 protected:
  static CausalId id(uint64_t path, uint64_t ordinal) { return {{7}, {path, path}, ordinal}; }

  void call(const CausalId& call, const char* function, WorkerId peer = kPs) {
    (void)calls_.on_event({.kind = EventKind::api_call, .peer = peer, .id = call, .text = function},
                          now_);
  }
  void send(const CausalId& call) {
    (void)calls_.on_event({.kind = EventKind::frame_sent, .peer = kPs, .id = call}, now_);
  }
  const FailingCalls::Streak* complete(const CausalId& call, uint64_t number, WorkerId peer = kPs) {
    return calls_.on_event(
        {.kind = EventKind::call_completed, .peer = peer, .id = call, .number = number}, now_);
  }
  const FailingCalls::Streak* fail(uint64_t path, WorkerId peer = kPs) {
    const CausalId next = id(path, next_++);
    call(next, "one", peer);
    return complete(next, 1 + static_cast<uint64_t>(ErrorKind::peer_lost), peer);
  }

  FailingCalls calls_{milliseconds(1)};
  Instant now_{};
  uint64_t next_ = 0;
};

TEST_F(FailingCallsTest, ALoopThatTriesAgainIsOneStreak) {
  // Goal: caller, function, error, how often and since when. Method: calls of several executions,
  // as those of continuations are, at three instants.
  now_ = Instant{milliseconds(10)};
  for (uint64_t i = 0; i < 3; ++i) (void)fail(i);
  now_ = Instant{milliseconds(12)};
  const FailingCalls::Streak* const streak = fail(4);
  ASSERT_NE(streak, nullptr);
  EXPECT_EQ(streak->function, "one");
  EXPECT_EQ(streak->peer, kPs);
  EXPECT_EQ(streak->count, 4u);
  EXPECT_EQ(streak->at_once, 4u);
  EXPECT_EQ(streak->in_instant, 1u);
  EXPECT_EQ(streak->since, Instant{milliseconds(10)});
  EXPECT_EQ(streak->kind, ErrorKind::peer_lost);
  EXPECT_EQ(calls_.streaks().size(), 1u);
}

TEST_F(FailingCallsTest, WhatWasSentOrTookTimeHasNotFailedAtOnce) {
  // Goal: the two are told apart, also where a call that was under way begins the streak.
  const CausalId sent = id(1, 100);
  call(sent, "one");
  send(sent);
  ASSERT_NE(complete(sent, 2), nullptr);
  EXPECT_EQ(calls_.streaks().front().at_once, 0u);
  const CausalId slow = id(1, 101);
  call(slow, "one");
  now_ += milliseconds(2);
  EXPECT_FALSE(complete(slow, 2)->last_at_once);
  EXPECT_EQ(calls_.streaks().front().count, 2u);
  now_ += milliseconds(2);
  const FailingCalls::Streak* const streak = fail(1);
  EXPECT_TRUE(streak->last_at_once);
  EXPECT_EQ(streak->count, 1u);
  EXPECT_EQ(streak->since, now_);
}

TEST_F(FailingCallsTest, AValueEndsTheStreaksOfItsPeerAndOfItsExecution) {
  (void)fail(1, kPs);
  (void)fail(2, kStore);
  (void)fail(3, WorkerId{3});
  EXPECT_EQ(calls_.streaks().size(), 3u);
  const CausalId good = id(2, 500);
  call(good, "two", kPs);
  EXPECT_EQ(complete(good, 0, kPs), nullptr);
  ASSERT_EQ(calls_.streaks().size(), 1u);
  EXPECT_EQ(calls_.streaks().front().peer, WorkerId{3});
}

TEST_F(FailingCallsTest, WhatIsForgivenIsCountedOn) {
  // Goal: the whole number is told, and only what came later is judged.
  for (int i = 0; i < 5; ++i) (void)fail(1);
  calls_.forgive();
  const FailingCalls::Streak* const streak = fail(1);
  EXPECT_EQ(streak->at_once, 6u);
  EXPECT_EQ(streak->at_once - streak->forgiven_at_once, 1u);
  EXPECT_EQ(streak->count - streak->forgiven, 1u);
}

TEST_F(FailingCallsTest, ACallThatIsNotTheLastOneIsNobodysStreak) {
  // Goal: no function is blamed for another one's call. Method: two calls at once, of which the
  // first fails.
  call(id(1, 1), "one");
  call(id(1, 2), "two");
  EXPECT_EQ(complete(id(1, 1), 2), nullptr);
  EXPECT_TRUE(calls_.streaks().empty());
}

}  // namespace
}  // namespace rehearsal
