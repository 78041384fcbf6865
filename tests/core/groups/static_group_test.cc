#include "core/groups/static_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/core/groups/group_fixture.h"

namespace rehearsal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

using JoinTest = GroupFixture;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// ---- joining ----

TEST_F(JoinTest, AllHaveJoinedWhenAllHaveHeardReadyFromAll) {
  begin();
  for (const auto& member : members) member->join();
  network.connect(0, 1);
  network.deliver_all();
  EXPECT_FALSE(a().joined.has_value());
  network.connect(0, 2);
  network.deliver_all();
  EXPECT_FALSE(a().joined.has_value());
  network.connect(1, 2);
  EXPECT_FALSE(a().joined.has_value());
  deliver_all();
  for (const auto& member : members) {
    ASSERT_TRUE(member->joined.has_value());
    EXPECT_TRUE(member->joined->ok());
    EXPECT_EQ(member->deadlines.size(), 0u);
  }
}

TEST_F(JoinTest, AMissingWorkerIsNamedWhenTheTimeIsUp) {
  begin();
  for (const auto& member : members) member->join(seconds(10));
  network.connect(0, 1);
  network.deliver_all();
  EXPECT_EQ(a().group.describe(), "join waits for 'c' (never met)\n");
  world.advance(seconds(10));
  for (GroupMember* member : {&a(), &b()}) {
    ASSERT_TRUE(member->joined.has_value());
    EXPECT_EQ(member->joined->error().kind, ErrorKind::timeout);
    EXPECT_EQ(member->joined->error().text,
              "not all workers have joined in time; missing: 'c' (never met)");
    EXPECT_EQ(member->joined->error().worker, "c");
  }
}

TEST_F(JoinTest, AnotherRegistryFailsBothSidesAndNamesTheFirstFunctionThatDiffers) {
  members.push_back(make(0, "add (int64,) -> int64\nsub () -> unit\n"));
  members.push_back(make(1, "add (int64,) -> int64\nmul () -> unit\n"));
  members.push_back(make(2, "add (int64,) -> int64\nsub () -> unit\n"));
  for (const auto& member : members) member->join();
  network.connect_all();
  deliver_all();
  ASSERT_TRUE(a().joined.has_value());
  EXPECT_EQ(a().joined->error().kind, ErrorKind::protocol);
  EXPECT_EQ(a().joined->error().text,
            "worker 'b' has other functions registered: here sub () -> unit, there mul () -> unit");
  ASSERT_TRUE(b().joined.has_value());
  EXPECT_TRUE(contains(b().joined->error().text, "has other functions registered"));
  ASSERT_TRUE(c().joined.has_value());
  EXPECT_FALSE(c().joined->ok());
}

TEST_F(JoinTest, AWorkerThatIsLostMeanwhileFailsTheJoin) {
  begin();
  for (const auto& member : members) member->join();
  network.connect(0, 1);
  a().fence(1);
  ASSERT_TRUE(a().joined.has_value());
  EXPECT_EQ(a().joined->error().worker, "b");
}

TEST_F(JoinTest, AGreetingThatComesAgainChangesNothing) {
  // The link is cut and made again: the same incarnation greets twice, before and after the join.
  begin();
  for (const auto& member : members) member->join();
  network.connect_all();
  network.cut(0, 1);
  network.connect(0, 1);
  deliver_all();
  EXPECT_TRUE(a().joined && a().joined->ok());
  network.cut(0, 1);
  network.connect(0, 1);
  deliver_all();
  EXPECT_TRUE(a().joined->ok());
  EXPECT_EQ(a().sessions.fenced().size(), 0u);
}

TEST_F(JoinTest, ALifeThatNoWorkerHasIsRefused) {
  // Goal: nobody counts what one worker says of its lives beyond what all can have together.
  // Method: the first life that cannot be, and one whose double was the end of all phases.
  for (const uint32_t life : {kLivesMax, uint32_t{1} << 29}) {
    members.clear();
    members.push_back(make(0));
    members.push_back(make(1));
    members.push_back(make(2, "f () -> int\n", life));
    for (const auto& member : members) member->join();
    network.connect_all();
    deliver_all();
    for (GroupMember* member : {&a(), &b()}) {
      ASSERT_TRUE(member->joined.has_value());
      EXPECT_EQ(member->joined->error().kind, ErrorKind::protocol);
      EXPECT_EQ(member->joined->error().worker, "c");
      EXPECT_EQ(member->joined->error().text,
                "worker 'c' says that it has had " + std::to_string(life) +
                    " lives before; a worker has at most 65536: start the whole group anew");
    }
  }
}

TEST_F(JoinTest, TheLastLivesOfAllWorkersJoinAndLeave) {
  for (const uint32_t worker : {0u, 1u, 2u})
    members.push_back(make(worker, "f () -> int\n", kLivesMax - 1));
  for (const auto& member : members) member->join();
  network.connect_all();
  deliver_all();
  for (const auto& member : members) {
    ASSERT_TRUE(member->joined && member->joined->ok());
    member->shut_down();
  }
  deliver_all();
  for (const auto& member : members) {
    ASSERT_TRUE(member->left.has_value()) << member->group.describe();
    EXPECT_TRUE(member->left->ok()) << member->left->error().text;
    EXPECT_TRUE(member->sessions.fenced().empty());
  }
}

TEST_F(JoinTest, AViewThatCannotBeFencesItsSender) {
  // Goal: what one worker says that it has met is bounded, too. Method: b, whom a has met and who
  // waits for c, names a life that nobody has, and itself.
  const auto says = [&](const MetMember& met) {
    members.clear();
    begin();
    for (const auto& member : members) member->join();
    network.connect(0, 1);
    deliver_all();
    b().say(0, Message{GroupView{.member = false, .met = {met}}});
    deliver_all();
    return a().joined && !a().joined->ok() ? a().joined->error().text : "joins on";
  };
  const std::string broke = "worker 'b' broke the protocol: GroupView.met ";
  EXPECT_EQ(says({WorkerId{2}, kLivesMax}), broke + "names a life that no worker has");
  EXPECT_EQ(says({WorkerId{1}, 0}), broke + "names its sender");
  EXPECT_EQ(says({WorkerId{2}, kLivesMax - 1}), "joins on");
}

// ---- shutting down ----

using ShutdownTest = ShutdownFixture;

TEST_F(ShutdownTest, NobodyLeavesBeforeAllHaveArrived) {
  a().shut_down();
  b().shut_down();
  deliver_all();
  EXPECT_FALSE(a().left.has_value());
  EXPECT_EQ(a().group.describe(), "shutdown: missing or busy: 'c'\n");
  EXPECT_EQ(b().group.describe(), "shutdown: it waits for 'a'\n");
  EXPECT_EQ(a().releases, 0);
  c().shut_down();
  deliver_all();
  expect_all_left();
  for (const auto& member : members) EXPECT_GE(member->releases, 1);
}

TEST_F(ShutdownTest, ABusyWorkerHoldsAllOthers) {
  c().busy = true;
  shut_down_all();
  deliver_all();
  EXPECT_FALSE(a().left.has_value());
  EXPECT_EQ(a().releases, 0);
  EXPECT_EQ(c().group.describe(),
            "shutdown: it waits for 'a', and is busy itself (1 running function)\n");
  c().change([&] { c().busy = false; });
  deliver_all();
  expect_all_left();
}

TEST_F(ShutdownTest, ReferencesAreReleasedWhenCallsHaveEndedAndAwaited) {
  // Phase 1: one reference is left at b until it is told that it is gone.
  b().references = 1;
  shut_down_all();
  deliver_all();
  for (const auto& member : members) EXPECT_GE(member->releases, 1);
  EXPECT_FALSE(a().left.has_value());
  b().change([&] { b().references = 0; });
  deliver_all();
  expect_all_left();
}

TEST_F(ShutdownTest, WhatTheCoordinatorHasHandledBeforeAWaveCostsNoSecondOne) {
  // It was quiet before and after, and so reports nothing. Each phase has one wave, and between
  // them the others are told that references are next.
  c().busy = true;
  shut_down_all();
  deliver_all();
  a().change([&] { ++a().activity; });
  deliver_all();
  const auto probes = [&] {
    return std::ranges::count_if(c().trace.entries(), [](const auto& entry) {
      return entry.event.kind == EventKind::frame &&
             entry.event.message_type == Message{ShutdownProbe{}}.type();
    });
  };
  const auto before = probes();
  c().change([&] { c().busy = false; });
  deliver_all();
  expect_all_left();
  EXPECT_EQ(probes() - before, 3);
}

TEST_F(ShutdownTest, AMessageBetweenTheWavesAsksAgain) {
  // All are quiet and the wave runs; then one handles a message that another had sent before.
  shut_down_all();
  int probes = 0;
  for (int step = 0; step < 1000 && !c().left; ++step) {
    if (network.in_flight().empty()) {
      world.advance(milliseconds(1));
      if (network.in_flight().empty()) continue;
    }
    const auto& first = network.in_flight()[0];
    const bool to_c = first.to == WorkerId{2} && first.frame.body != nullptr;
    if (to_c && ++probes == 1) c().change([&] { ++c().activity; });
    network.deliver(0);
  }
  deliver_all();
  expect_all_left();
  EXPECT_GE(probes, 3);
}

TEST_F(ShutdownTest, AnUnacknowledgedMessageKeepsItsSenderBusy) {
  // b sends to c; the frame is held: nobody may leave although all else is quiet.
  const CallId of_b{{b().sessions.incarnation(WorkerId{1}), {}, 0}};
  b().runtime->post([&] { b().sessions.send(WorkerId{2}, Message{Cancel{of_b}}); });
  const auto held = network.take(0);
  shut_down_all();
  deliver_all();
  EXPECT_FALSE(a().left.has_value());
  network.put(held);
  deliver_all();
  expect_all_left();
  EXPECT_EQ(c().activity, 1u);
}

TEST_F(ShutdownTest, WhoWaitsForWorkersThatWorkOnWaitsAsLongAsTheyDo) {
  a().shut_down(seconds(5));
  b().shut_down(seconds(5));
  pass(seconds(100));
  EXPECT_FALSE(a().left.has_value());
  EXPECT_FALSE(b().left.has_value());
  c().shut_down(seconds(5));
  deliver_all();
  expect_all_left();
}

TEST_F(ShutdownTest, ItsTimeIsBoundedOnceAllHaveArrivedAndNamesWhoIsBusy) {
  c().busy = true;
  for (const auto& member : members) member->shut_down(seconds(5));
  pass(seconds(4));
  for (const auto& member : members) EXPECT_FALSE(member->left.has_value());
  pass(seconds(2));
  for (const auto& member : members) {
    ASSERT_TRUE(member->left.has_value());
    EXPECT_EQ(member->left->error().kind, ErrorKind::timeout);
    EXPECT_EQ(member->trace.marked("a shutdown timed out"), 1u);
  }
  EXPECT_TRUE(contains(a().left->error().text, "missing or busy: 'c'"));
  EXPECT_TRUE(contains(b().left->error().text, "it waits for 'a'"));
}

TEST_F(ShutdownTest, ANewCoordinatorBoundsTheTimeToo) {
  // a is lost before it could say that all have arrived; c is busy for ever.
  c().busy = true;
  b().shut_down(seconds(5));
  c().shut_down(seconds(5));
  pass(seconds(10));
  EXPECT_FALSE(b().left.has_value());
  for (GroupMember* member : {&b(), &c()}) member->fence(0);
  pass(seconds(6));
  for (GroupMember* member : {&b(), &c()}) {
    ASSERT_TRUE(member->left.has_value());
    EXPECT_EQ(member->left->error().kind, ErrorKind::timeout);
  }
}

TEST_F(ShutdownTest, ALostWorkerIsTheResultAndHoldsNobody) {
  // c never arrives, and is lost by both others: they leave, and say why.
  a().shut_down();
  b().shut_down();
  deliver_all();
  for (GroupMember* member : {&a(), &b()}) member->fence(2);
  deliver_all();
  for (GroupMember* member : {&a(), &b()}) {
    ASSERT_TRUE(member->left.has_value());
    EXPECT_EQ(member->left->error().kind, ErrorKind::peer_lost);
    EXPECT_EQ(member->left->error().worker, "c");
  }
}

TEST_F(ShutdownTest, NobodyLeavesWhileTheyDisagreeOnWhoIsLost) {
  // Only b has lost c: the group waits, since c may still have been in touch with a.
  shut_down_all();
  b().fence(2);
  network.deliver_all();
  EXPECT_FALSE(a().left.has_value());
  a().fence(2);
  deliver_all();
  EXPECT_TRUE(a().left.has_value());
  EXPECT_TRUE(b().left.has_value());
}

TEST_F(ShutdownTest, AWorkerThatComesBackIsWaitedForWhoeverItIs) {
  // Goal: those that have arrived tell a coordinator that is new, and agree with it on who is lost.
  for (const uint32_t back : {0u, 1u, 2u}) {
    members.clear();
    join_all();
    for (const uint32_t other : {0u, 1u, 2u})
      if (other != back) members[other]->shut_down(seconds(5));
    deliver_all();
    for (const uint32_t other : {0u, 1u, 2u})
      if (other != back) network.cut(back, other);
    members[back] = make(back, "f () -> int\n", 1);
    GroupMember& newcomer = *members[back];
    newcomer.join();
    for (const uint32_t other : {0u, 1u, 2u})
      if (other != back) network.connect(back, other);
    deliver_all();
    ASSERT_TRUE(newcomer.joined.has_value());
    EXPECT_TRUE(newcomer.joined->ok());
    pass(seconds(100));
    for (const auto& member : members) EXPECT_FALSE(member->left.has_value()) << back;
    newcomer.shut_down();
    deliver_all();
    for (const auto& member : members) {
      ASSERT_TRUE(member->left.has_value()) << back << ": " << member->group.describe();
      EXPECT_TRUE(member->left->ok()) << back << ": " << member->left->error().text;
    }
  }
}

TEST_F(ShutdownTest, AWorkerThatComesBackBetweenThePhasesBeginsWithTheFirst) {
  // Goal: what it leaves at the others is released, too. All are told to release; b has references
  // yet; c comes back, works, and leaves references at a.
  b().references = 1;
  shut_down_all();
  deliver_all();
  EXPECT_EQ(a().releases, 1);
  EXPECT_FALSE(a().left.has_value());
  network.cut(0, 2);
  network.cut(1, 2);
  members[2] = make(2, "f () -> int\n", 1);
  c().join();
  network.connect(0, 2);
  deliver_all();
  b().change([&] { b().references = 0; });
  network.connect(1, 2);
  deliver_all();
  a().references = 1;
  c().shut_down();
  deliver_all();
  EXPECT_EQ(a().releases, 2);
  EXPECT_FALSE(a().left.has_value());
  a().change([&] { a().references = 0; });
  deliver_all();
  for (const auto& member : members) EXPECT_TRUE(member->left.has_value());
}

TEST_F(ShutdownTest, WhoIsToldToGoGoesThoughAWorkerHasComeBackMeanwhile) {
  // Goal: the order to go, which the coordinator gave before, counts when it comes. Method: b has
  // told a in a wave that it has released; then c comes back to b alone.
  c().references = 1;
  shut_down_all();
  deliver_all();
  ASSERT_EQ(b().releases, 1);
  a().say(1, Message{ShutdownProbe{.phase = 1, .wave = 1}});
  deliver_all();
  network.cut(0, 2);
  network.cut(1, 2);
  members[2] = make(2, "f () -> int\n", 1);
  c().join();
  network.connect(1, 2);
  deliver_all();
  ASSERT_FALSE(b().left.has_value());
  a().say(1, Message{Leave{}});
  deliver_all();
  ASSERT_TRUE(b().left.has_value()) << b().group.describe();
  EXPECT_TRUE(b().left->ok()) << b().left->error().text;
}

TEST_F(ShutdownTest, WhoHasLostAnotherLifeOfTheSameWorkerHasLostTheSameWorker) {
  // a comes back, meets b only, and is lost once more: b and c have lost different lives of it.
  b().shut_down();
  c().shut_down();
  network.cut(0, 1);
  network.cut(0, 2);
  members[0] = make(0, "f () -> int\n", 1);
  a().join();
  network.connect(0, 1);
  deliver_all();
  EXPECT_FALSE(a().joined.has_value());
  b().fence(0);
  c().fence(0);
  network.cut(0, 1);
  deliver_all();
  EXPECT_TRUE(b().left.has_value()) << b().group.describe();
  EXPECT_TRUE(c().left.has_value()) << c().group.describe();
}

TEST_F(ShutdownTest, ATimeoutNamesThoseThatHaveLostOthers) {
  for (const auto& member : members) member->shut_down(seconds(5));
  b().fence(2);
  pass(seconds(6));
  ASSERT_TRUE(a().left.has_value());
  EXPECT_TRUE(
      contains(a().left->error().text, "missing or busy: none; lost others than this worker: 'b'"))
      << a().left->error().text;
}

TEST_F(ShutdownTest, TheEndOfTheNodeEndsItsShutdown) {
  a().shut_down();
  const Error why{.kind = ErrorKind::node_stopped, .text = "killed by hand"};
  a().runtime->post([&] { a().group.fail(why); });
  EXPECT_EQ(a().left->error(), why);
  a().runtime->post([&] { a().group.fail(why); });
}

TEST_F(ShutdownTest, CutsDuringTheShutdownAreMended) {
  // The links are cut after every tenth delivery; all leave all the same.
  shut_down_all();
  for (int step = 0; step < 400 && !(a().left && b().left && c().left); ++step) {
    if (!network.deliver_first()) world.advance(milliseconds(1));
    if (step % 10 != 9) continue;
    for (uint32_t one = 0; one < 3; ++one)
      for (uint32_t other = one + 1; other < 3; ++other) {
        network.cut(one, other);
        network.connect(one, other);
      }
  }
  expect_all_left();
}

}  // namespace
}  // namespace rehearsal
