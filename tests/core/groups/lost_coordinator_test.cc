// Goal: a shutdown ends although who coordinates it is lost. Method: it is lost at each point where
// it has told some workers and not all.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/groups/static_group.h"
#include "tests/core/groups/group_fixture.h"

namespace rehearsal {
namespace {

using std::chrono::milliseconds;

using LostCoordinatorTest = ShutdownFixture;

TEST_F(LostCoordinatorTest, WhenTheCoordinatorIsLostTheNextOneTakesOver) {
  b().shut_down();
  c().shut_down();
  deliver_all();
  EXPECT_FALSE(b().left.has_value());
  for (GroupMember* member : {&b(), &c()}) member->fence(0);
  deliver_all();
  for (GroupMember* member : {&b(), &c()}) {
    ASSERT_TRUE(member->left.has_value());
    EXPECT_EQ(member->left->error().worker, "a");
  }
}

TEST_F(LostCoordinatorTest, WhoWasNotToldThatAllHaveArrivedIsToldByTheNextCoordinator) {
  // a hears that all have arrived and is lost when only one of the others knows; c is busy then.
  for (const uint32_t told : {1u, 2u}) {
    members.clear();
    join_all();
    c().busy = true;
    b().shut_down();
    c().shut_down();
    deliver_all();
    a().shut_down();
    const auto to_told = [&] {
      return std::ranges::find_if(network.in_flight(), [&](const auto& flying) {
        return flying.from == WorkerId{0} && flying.to == WorkerId{told};
      });
    };
    ASSERT_NE(to_told(), network.in_flight().end());
    while (to_told() != network.in_flight().end())
      network.deliver(static_cast<size_t>(to_told() - network.in_flight().begin()));
    network.cut(0, 1);
    network.cut(0, 2);
    for (GroupMember* member : {&b(), &c()}) member->fence(0);
    deliver_all();
    EXPECT_FALSE(b().left.has_value());
    c().change([&] { c().busy = false; });
    deliver_all();
    EXPECT_TRUE(b().left.has_value()) << told << ": " << b().group.describe();
    EXPECT_TRUE(c().left.has_value()) << told << ": " << c().group.describe();
  }
}

// a tells `told` of phase 1 and is lost before `untold` hears of it: both leave all the same.
class LostBetweenPhasesTest : public ShutdownFixture {
 protected:
  // `early`: who gives a up before the other does; null: both at once.
  void lose_the_coordinator(GroupMember& told, GroupMember& untold, WorkerId untold_id,
                            GroupMember* early = nullptr) {
    b().busy = true;
    shut_down_all();
    deliver_all();
    b().change([&] { b().busy = false; });
    for (int step = 0; step < 200 && told.releases == 0; ++step) {
      if (network.in_flight().empty()) world.advance(milliseconds(1));
      for (size_t at = 0; at < network.in_flight().size(); ++at) {
        // The news of the next phase comes after a has released: it is never delivered.
        if (a().releases > 0 && network.in_flight()[at].to == untold_id) continue;
        network.deliver(at);
        break;
      }
    }
    ASSERT_EQ(told.releases, 1);
    ASSERT_EQ(untold.releases, 0);
    network.cut(0, 1);
    network.cut(0, 2);
    if (early != nullptr) {
      early->fence(0);
      deliver_all();
    }
    for (GroupMember* member : {&b(), &c()}) member->fence(0);
    deliver_all();
    EXPECT_TRUE(b().left.has_value()) << b().group.describe();
    EXPECT_TRUE(c().left.has_value()) << c().group.describe();
  }
};

TEST_F(LostBetweenPhasesTest, TheNextCoordinatorIsToldOfThePhaseByTheOthers) {
  lose_the_coordinator(c(), b(), WorkerId{1});
}

TEST_F(LostBetweenPhasesTest, TheNextCoordinatorTakesTheOthersAlong) {
  lose_the_coordinator(b(), c(), WorkerId{2});
}

TEST_F(LostBetweenPhasesTest, AReportThatCameBeforeTheChangeCountsAfterIt) {
  lose_the_coordinator(c(), b(), WorkerId{1}, &c());
}

TEST_F(LostBetweenPhasesTest, WhoReportedTooEarlyIsTakenAlong) {
  lose_the_coordinator(b(), c(), WorkerId{2}, &c());
}

class ShutdownOfFourTest : public ShutdownFixture {
 protected:
  ShutdownOfFourTest() : ShutdownFixture({"a", "b", "c", "d"}) {}
};

TEST_F(ShutdownOfFourTest, OneThatCameBackForAMomentIsKnownToSomeOnly) {
  // All have arrived and c is busy. a comes back, meets d, and is lost before b and c meet it.
  c().busy = true;
  shut_down_all();
  deliver_all();
  for (const uint32_t other : {1u, 2u, 3u}) network.cut(0, other);
  members[0] = make(0, "f () -> int\n", 1);
  a().join();
  network.connect(0, 3);
  deliver_all();
  network.cut(0, 3);
  for (const uint32_t other : {1u, 2u, 3u}) members[other]->fence(0);
  deliver_all();
  c().change([&] { c().busy = false; });
  deliver_all();
  for (const uint32_t other : {1u, 2u, 3u})
    EXPECT_TRUE(members[other]->left.has_value()) << members[other]->group.describe();
}

}  // namespace
}  // namespace rehearsal
