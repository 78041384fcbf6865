// Goal: a worker that dies and comes again while a static group comes together is met as if it had
// not: all join. Method: three workers on a network on which the test says who meets whom; one of
// them dies at every step of the join, once and twice, noticed and not.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/groups/static_group.h"
#include "tests/core/groups/group_fixture.h"

namespace rehearsal {
namespace {

constexpr const char* kFunctions = "f () -> int\n";

class RestartsWhileJoiningTest : public GroupFixture {
 protected:
  void SetUp() override {
    begin();
    for (const auto& member : members) member->join();
  }
  // Another group comes together: nothing is left of the one before.
  void start_anew() {
    for (uint32_t worker = 0; worker < 3; ++worker) die(worker);
    members.clear();
    SetUp();
  }
  // Its process ends: its links break, and all that was on its way is lost.
  void die(uint32_t worker) {
    for (uint32_t other = 0; other < 3; ++other)
      if (other != worker) network.cut(worker, other);
  }
  void come_again(uint32_t worker, uint32_t life) {
    members[worker] = make(worker, kFunctions, life);
    members[worker]->join();
  }
  // As the port of a process that has ended does; it was met before.
  void notice_death(uint32_t at, uint32_t worker) {
    members[at]->runtime->post([&] {
      members[at]->sessions.on_refused({worker},
                                       {.count = 10, .lasting = std::chrono::seconds(10)});
    });
  }
  void connect_all_that_are_not() {
    for (uint32_t one = 0; one < 3; ++one)
      for (uint32_t other = one + 1; other < 3; ++other)
        if (!network.is_up(one, other)) network.connect(one, other);
  }
  // Whether all have joined; why not, for people.
  testing::AssertionResult all_have_joined() {
    for (const auto& member : members) {
      if (!member->joined)
        return testing::AssertionFailure()
               << member->strand->name() << ": " << member->group.describe();
      if (!member->joined->ok())
        return testing::AssertionFailure()
               << member->strand->name() << ": " << member->joined->error().text;
    }
    return testing::AssertionSuccess();
  }
};

TEST_F(RestartsWhileJoiningTest, WhoDiesWhenItIsLinkedWithSomeIsWaitedFor) {
  // Goal: neither who has met it nor who has not fails. Method: it is linked with one of the
  // others.
  for (const bool noticed : {false, true}) {
    start_anew();
    network.connect(0, 1);
    deliver_all();
    die(1);
    if (noticed) notice_death(0, 1);
    EXPECT_FALSE(a().joined.has_value());
    come_again(1, 1);
    connect_all_that_are_not();
    deliver_all();
    EXPECT_TRUE(all_have_joined()) << noticed;
  }
}

TEST_F(RestartsWhileJoiningTest, WhoDiesAtAnyStepIsWaitedForOnceAndTwice) {
  // Goal: there is no step at which its death leaves anybody behind. Method: it dies after so many
  // deliveries, and its next life, if at all, after as many more; the others have noticed, or have
  // not.
  constexpr int kSteps = 24;  // all deliveries of a join, acknowledgements too
  for (uint32_t worker = 0; worker < 3; ++worker) {
    for (int step = 0; step < kSteps; ++step) {
      for (const uint32_t deaths : {1u, 2u}) {
        for (const bool noticed : {false, true}) {
          start_anew();
          network.connect_all();
          for (uint32_t life = 1; life <= deaths; ++life) {
            for (int i = 0; i < step; ++i)
              if (!network.deliver_first()) world.advance(std::chrono::milliseconds(1));
            die(worker);
            for (uint32_t other = 0; noticed && other < 3; ++other)
              if (other != worker) notice_death(other, worker);
            come_again(worker, life);
            connect_all_that_are_not();
          }
          deliver_all();
          ASSERT_TRUE(all_have_joined())
              << worker << " after " << step << ", " << deaths << " deaths, noticed " << noticed;
        }
      }
    }
  }
}

TEST_F(RestartsWhileJoiningTest, WhoIsGivenUpForWhatItSaysIsNotWaitedFor) {
  // Goal: only a death is followed by another life. Method: it is fenced by hand, with the reason
  // of a protocol that it broke.
  network.connect(0, 1);
  a().runtime->post([&] { a().sessions.accuse({1}, {"Ready", "is not so"}); });
  ASSERT_TRUE(a().joined.has_value());
  EXPECT_EQ(a().joined->error().kind, ErrorKind::protocol);
}

TEST_F(RestartsWhileJoiningTest, WhoIsWaitedForAsAMemberIsTheLifeThatIsThere) {
  // Goal: nobody is told that a worker is there which has died and is not missed yet. Method: tasks
  // that wait for it, before and after its link breaks, and once more when it is made again.
  connect_all_that_are_not();
  deliver_all();
  ASSERT_TRUE(all_have_joined());
  int here = 0;
  const auto await = [&] {
    a().runtime->post([&] { a().group.when_here({1}, [&here] { ++here; }); });
  };
  await();
  EXPECT_EQ(here, 1);
  network.cut(0, 1);
  await();
  EXPECT_EQ(here, 1);
  network.connect(0, 1);
  EXPECT_EQ(here, 2);
  die(1);
  await();
  EXPECT_EQ(here, 2);
  come_again(1, 1);
  connect_all_that_are_not();
  EXPECT_EQ(here, 3);
}

}  // namespace
}  // namespace rehearsal
