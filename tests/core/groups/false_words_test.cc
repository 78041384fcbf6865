// Goal: no member of a static group can end what others still do by saying what is not true of the
// shutdown; where others see that it cannot be, they fence it. Method: one of three says it, before
// the shutdown, while some have arrived, and when all have.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/groups/static_group.h"
#include "tests/core/groups/group_fixture.h"

namespace rehearsal {
namespace {

constexpr const char* kNotAsked =
    "' broke the protocol: Leave comes from a worker that has not asked for the end";

class FalseWordsTest : public ShutdownFixture {
 protected:
  // Another group: nothing is left of the one before.
  void start_anew() {
    for (const uint32_t one : {0u, 1u})
      for (uint32_t other = one + 1; other < 3; ++other) network.cut(one, other);
    members.clear();
    join_all();
  }
  // c has ended a, so that b hears no more of it.
  void lose_a_at_b() {
    network.cut(0, 1);
    b().fence(0);
    deliver_all();
  }
  // At the end of its shutdown `of` says why it has lost the mad one.
  static void expect_left_for(const GroupMember& of, const std::string& why) {
    ASSERT_TRUE(of.left.has_value()) << of.group.describe();
    ASSERT_FALSE(of.left->ok());
    EXPECT_EQ(of.left->error().kind, ErrorKind::protocol);
    EXPECT_EQ(of.left->error().text, why);
  }
  static size_t reports(const GroupMember& to, WorkerId from) {
    return static_cast<size_t>(std::ranges::count_if(to.trace.entries(), [&](const auto& entry) {
      return entry.event.kind == EventKind::frame && entry.event.peer == from &&
             entry.event.message_type == Message{ShutdownReport{}}.type();
    }));
  }
};

TEST_F(FalseWordsTest, NobodyIsDismissedByWhoDoesNotCoordinate) {
  // Goal: who is told to go does not, and fences who says it. Method: c says it when nobody has
  // arrived, when a has, and when all have.
  for (const uint32_t arrived : {0u, 1u, 3u}) {
    start_anew();
    b().busy = true;
    for (uint32_t worker = 0; worker < arrived; ++worker) members[worker]->shut_down();
    deliver_all();
    for (const uint32_t other : {0u, 1u}) c().say(other, Message{Leave{}});
    deliver_all();
    for (GroupMember* member : {&a(), &b()}) {
      EXPECT_EQ(member->sessions.fenced().size(), 1u) << arrived;
      EXPECT_FALSE(member->left.has_value()) << arrived;
      EXPECT_EQ(member->releases, 0) << arrived;
    }
    for (uint32_t worker = arrived; worker < 2; ++worker) {
      EXPECT_FALSE(a().left.has_value()) << arrived;
      members[worker]->shut_down();
      deliver_all();
    }
    EXPECT_FALSE(a().left.has_value()) << arrived;
    b().change([&] { b().busy = false; });
    deliver_all();
    for (GroupMember* member : {&a(), &b()})
      expect_left_for(*member, std::string("worker 'c") + kNotAsked);
  }
}

TEST_F(FalseWordsTest, TheCoordinatorDismissesNobodyWhomItHasNotAskedInAWave) {
  c().busy = true;
  shut_down_all();
  deliver_all();
  for (const uint32_t other : {1u, 2u}) a().say(other, Message{Leave{}});
  deliver_all();
  for (GroupMember* member : {&b(), &c()}) {
    EXPECT_EQ(member->sessions.fenced().size(), 1u);
    EXPECT_FALSE(member->left.has_value());
  }
  c().change([&] { c().busy = false; });
  deliver_all();
  for (GroupMember* member : {&b(), &c()})
    expect_left_for(*member, std::string("worker 'a") + kNotAsked);
}

TEST_F(FalseWordsTest, NobodyIsDismissedAtTheEndOfCalls) {
  // Goal: who has said that its calls have ended, and has not released, does not go. Method: a says
  // Leave to c as soon as that has answered in a wave.
  b().busy = true;
  shut_down_all();
  deliver_all();
  a().say(2, Message{ShutdownProbe{.phase = 0, .wave = 1}});
  a().say(2, Message{Leave{}});
  deliver_all();
  EXPECT_EQ(c().sessions.fenced().size(), 1u);
  EXPECT_EQ(c().releases, 0);
  EXPECT_FALSE(c().left.has_value());
  b().change([&] { b().busy = false; });
  lose_a_at_b();
  expect_left_for(c(), std::string("worker 'a") + kNotAsked);
}

TEST_F(FalseWordsTest, WhoWasQuietBeforeItReleasedIsDismissedWhenItIsQuietAgain) {
  // Goal: what was said at the end of calls does not count at the end of references. Method: c has
  // a value that somebody holds; a says Leave to it meanwhile.
  c().references = 1;
  shut_down_all();
  deliver_all();
  ASSERT_EQ(c().releases, 1);
  ASSERT_FALSE(c().left.has_value());
  a().say(2, Message{Leave{}});
  deliver_all();
  EXPECT_EQ(c().sessions.fenced().size(), 1u);
  c().change([&] { c().references = 0; });
  lose_a_at_b();
  expect_left_for(c(), std::string("worker 'a") + kNotAsked);
}

TEST_F(FalseWordsTest, WhoIsAskedAgainWithANewcomerIsDismissedOnlyWhenItHasReleasedAgain) {
  // Goal: what was said before a worker came back does not count once the coordinator has asked
  // anew. Method: it asks in the phase that begins with the newcomer, and says Leave.
  c().references = 1;
  shut_down_all();
  deliver_all();
  a().say(1, Message{ShutdownProbe{.phase = 1, .wave = 1}});
  deliver_all();
  network.cut(0, 2);
  network.cut(1, 2);
  members[2] = make(2, "f () -> int\n", 1);
  c().join();
  network.connect(1, 2);
  deliver_all();
  a().say(1, Message{ShutdownProbe{.phase = 2, .wave = 1}});
  deliver_all();
  a().say(1, Message{Leave{}});
  deliver_all();
  EXPECT_FALSE(b().left.has_value());
  EXPECT_TRUE(std::ranges::any_of(b().trace.entries(), [](const auto& entry) {
    return entry.event.kind == EventKind::peer_fenced && entry.event.peer == WorkerId{0};
  }));
}

TEST_F(FalseWordsTest, AProbeOfAHigherRankFencesItsSender) {
  a().shut_down();
  deliver_all();
  c().say(0, Message{ShutdownProbe{.phase = 1, .wave = 1}});
  deliver_all();
  EXPECT_EQ(a().sessions.fenced().size(), 1u);
  EXPECT_EQ(a().releases, 0);
  EXPECT_FALSE(a().left.has_value());
}

TEST_F(FalseWordsTest, AProbeOfALowerRankCountsForNothingWhileTheCoordinatorLives) {
  // Goal: c, which has arrived, takes b's word for nothing, and does not blame b: a may be lost to
  // b. Method: what it releases, and reports to a or to b.
  c().shut_down();
  deliver_all();
  ASSERT_EQ(reports(a(), WorkerId{2}), 1u);
  b().say(2, Message{ShutdownProbe{.phase = 1, .wave = 1}});
  deliver_all();
  EXPECT_EQ(c().releases, 0);
  EXPECT_EQ(reports(a(), WorkerId{2}), 1u);
  EXPECT_EQ(reports(b(), WorkerId{2}), 0u);
  EXPECT_TRUE(c().sessions.fenced().empty());
  a().shut_down();
  b().shut_down();
  deliver_all();
  expect_all_left();
}

TEST_F(FalseWordsTest, OneThatAMadCoordinatorHasToldOfTheEndOfCallsGoesBackToThem) {
  // Goal: those that outlive a coordinator which said so to one of them only, who then works with
  // others again, agree and leave. Method: b is busy when a says it to c, and is lost; c holds a
  // value that b refers to until it releases.
  b().busy = true;
  c().references = 1;
  shut_down_all();
  deliver_all();
  a().say(2, Message{ShutdownProbe{.phase = 1, .wave = 0}});
  while (c().releases == 0 && network.deliver_first()) {
  }
  ASSERT_EQ(c().releases, 1);
  for (const uint32_t other : {1u, 2u}) network.cut(0, other);
  for (GroupMember* member : {&b(), &c()}) member->fence(0);
  deliver_all();
  EXPECT_EQ(b().releases, 0);
  b().change([&] { b().busy = false; });
  deliver_all();
  ASSERT_EQ(b().releases, 1) << b().group.describe();
  EXPECT_FALSE(c().left.has_value());
  c().change([&] { c().references = 0; });
  deliver_all();
  for (GroupMember* member : {&b(), &c()}) {
    ASSERT_TRUE(member->left.has_value()) << member->group.describe();
    EXPECT_EQ(member->left->error().worker, "a");
  }
}

// c says that references are to be released already. It is quiet, and believed in all else.
class FalsePhaseTest : public FalseWordsTest {
 protected:
  void say_that_calls_have_ended(uint32_t to, uint32_t phase = 1) {
    c().say(to, Message{ShutdownReport{.phase = phase, .quiet = true}});
    deliver_all();
  }
};

TEST_F(FalsePhaseTest, TheFirstCoordinatorKnowsThatNobodyHasEndedCalls) {
  // Method: c says so before b has arrived, and when all have and b is busy.
  a().shut_down();
  deliver_all();
  say_that_calls_have_ended(0);
  EXPECT_EQ(a().releases, 0);
  b().busy = true;
  b().shut_down();
  deliver_all();
  EXPECT_EQ(a().releases, 0);
  EXPECT_EQ(b().releases, 0);
  c().shut_down();
  deliver_all();
  say_that_calls_have_ended(0);
  EXPECT_EQ(a().releases, 0);
  EXPECT_EQ(b().releases, 0);
  b().change([&] { b().busy = false; });
  deliver_all();
  expect_all_left();
}

TEST_F(FalsePhaseTest, TheNextCoordinatorKnowsThatItHasNotBeenAsked) {
  // Method: b is busy, so that a, which is lost, can have ended nothing.
  b().busy = true;
  shut_down_all();
  deliver_all();
  for (GroupMember* member : {&b(), &c()}) member->fence(0);
  deliver_all();
  say_that_calls_have_ended(1);
  EXPECT_EQ(b().releases, 0);
  EXPECT_FALSE(b().left.has_value());
  b().change([&] { b().busy = false; });
  deliver_all();
  for (GroupMember* member : {&b(), &c()}) {
    ASSERT_TRUE(member->left.has_value()) << member->group.describe();
    EXPECT_EQ(member->left->error().worker, "a");
  }
}

TEST_F(FalsePhaseTest, ALaterLifeOfTheCoordinatorBelievesItWhenAllHaveReportedOnly) {
  // Goal: while somebody works, nothing is released at a, which cannot know how far its former life
  // had come. Method: b works; c says so, and then the truth.
  for (const uint32_t other : {1u, 2u}) network.cut(0, other);
  members[0] = make(0, "f () -> int\n", 1);
  a().join();
  for (const uint32_t other : {1u, 2u}) network.connect(0, other);
  deliver_all();
  ASSERT_TRUE(a().joined && a().joined->ok());
  a().shut_down();
  deliver_all();
  say_that_calls_have_ended(0, 3);
  EXPECT_EQ(a().releases, 0);
  c().shut_down();
  deliver_all();
  EXPECT_EQ(a().releases, 0);
  b().shut_down();
  deliver_all();
  expect_all_left();
}

}  // namespace
}  // namespace rehearsal
