#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/base/hash.h"
#include "tests/core/session/session_fixture.h"

namespace rehearsal {
namespace {

using SessionTest = SessionFixture;

TEST_F(SessionTest, DeliversEachMessageOnce) {
  // Both directions at once.
  for (const uint64_t number : numbers(0, 20)) {
    a->send(1, number);
    b->send(0, 100 + number);
  }
  deliver_all();
  EXPECT_EQ(b->received, numbers(0, 20));
  EXPECT_EQ(a->received, numbers(100, 120));
  EXPECT_EQ(a->messages[0].first, WorkerId{1});
}

TEST_F(SessionTest, AFrameNamesBothIncarnationsAndItsNumber) {
  a->send(1, 7);
  a->send(1, 8);
  const FrameHeader& header = network.in_flight()[1].frame.header;
  EXPECT_EQ(header.kind, FrameKind::message);
  EXPECT_EQ(header.source, Incarnation{100});
  EXPECT_EQ(header.destination, Incarnation{200});
  EXPECT_EQ(header.sequence, 2u);
  EXPECT_EQ(header.acknowledged, 0u);
}

TEST_F(SessionTest, EveryOrderOfArrivalDeliversAllOnce) {
  // All orders of five frames, as two lanes could mix them, each followed by all of them again.
  std::vector<uint64_t> order = numbers(0, 5);
  do {
    a = begin(0, 100 + a->received.size());
    b = begin(1, 1000 + mix(order[0], order[1] * 5 + order[2]) % 100000 + 1);
    connect();
    for (const uint64_t number : numbers(0, 5)) a->send(1, number);
    std::vector<doubles::ScriptedNetwork::InFlight> frames;
    while (!network.in_flight().empty()) frames.push_back(network.take(0));
    for (const uint64_t at : order) {
      network.put(frames[at]);
      network.deliver(0);
    }
    EXPECT_EQ(b->received, order);
    for (const auto& frame : frames) {
      network.put(frame);
      network.deliver(0);
    }
    EXPECT_EQ(b->received, order);
    EXPECT_EQ(b->trace.marked("a frame arrived twice"), 5u);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(SessionTest, WhatACutLosesIsResentOnceTheLinkIsBack) {
  // Five sent, two arrive, the rest is lost: it leaves again, in order, and nothing twice.
  for (const uint64_t number : numbers(0, 5)) a->send(1, number);
  network.deliver(0);
  network.deliver(0);
  cut();
  EXPECT_TRUE(network.in_flight().empty());
  EXPECT_EQ(a->sessions.unacknowledged(), 5u);
  connect();
  EXPECT_EQ(a->trace.marked("frames are resent"), 1u);
  deliver_all();
  EXPECT_EQ(b->received, numbers(0, 5));
  // The first two were not sent again: b's hello has told what it has.
  EXPECT_EQ(b->trace.count(EventKind::frame_dropped), 0u);
}

TEST_F(SessionTest, WhatIsSentWhileTheLinkIsDownLeavesWhenItIsBack) {
  cut();
  a->send(1, 3);
  EXPECT_TRUE(network.in_flight().empty());
  connect();
  deliver_all();
  EXPECT_EQ(b->received, (std::vector<uint64_t>{3}));
}

TEST_F(SessionTest, ManyCutsLoseAndDoubleNothing) {
  // 300 messages both ways over a link that is cut again and again, at places drawn from a seed.
  uint64_t sent = 0;
  for (uint64_t step = 0; sent < 300; ++step) {
    switch (mix(11, step) % 8) {
      case 0:
        cut();
        connect();
        break;
      case 1:
        world.advance(std::chrono::milliseconds(3));
        break;
      case 2:
      case 3:
        a->send(1, sent);
        b->send(0, sent++);
        break;
      default:
        deliver_next_from(static_cast<uint32_t>(mix(step, 1) % 2));
    }
  }
  for (int round = 0; round < 4; ++round) {
    deliver_all();
    world.advance(std::chrono::milliseconds(5));
  }
  for (SessionEnd* end : {a, b}) {
    std::sort(end->received.begin(), end->received.end());
    EXPECT_EQ(end->received, numbers(0, 300));
    EXPECT_EQ(end->sessions.unacknowledged(), 0u);
    EXPECT_TRUE(end->sessions.all_acknowledged());
  }
}

TEST_F(SessionTest, WithoutDeDuplicationAMessageIsHandledTwice) {
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  // The switch leaves out exactly this rule.
  mutants.turn_on(Mutant::no_deduplication);
  b = begin(1, 201);
  connect();
  a->send(1, 5);
  network.put(network.in_flight()[find(0)]);
  deliver_all();
  EXPECT_EQ(b->received, (std::vector<uint64_t>{5, 5}));
}

TEST_F(SessionTest, MessagesToOneselfTakeTheSamePath) {
  // Encoded and decoded, never in the caller's own turn, and counted until they are handled.
  bool acknowledged = false;
  a->runtime->post([&] {
    a->sessions.send(WorkerId{0}, SessionEnd::message(9),
                     {.on_acknowledged = [&] { acknowledged = true; }});
    EXPECT_TRUE(a->received.empty());
    EXPECT_FALSE(a->sessions.all_acknowledged());
    EXPECT_EQ(a->sessions.unacknowledged(), 1u);
  });
  EXPECT_EQ(a->received, (std::vector<uint64_t>{9}));
  EXPECT_TRUE(acknowledged);
  EXPECT_TRUE(a->sessions.all_acknowledged());
  EXPECT_TRUE(network.in_flight().empty());
  EXPECT_EQ(a->trace.count(EventKind::frame), 1u);
}

// ---- acknowledgements ----

TEST_F(SessionTest, AnAcknowledgementRidesOnADataFrame) {
  a->send(1, 1);
  deliver_all();
  b->send(0, 2);
  EXPECT_EQ(network.in_flight()[0].frame.header.acknowledged, 1u);
  deliver_all();
  EXPECT_EQ(a->sessions.unacknowledged(), 0u);
}

TEST_F(SessionTest, WithNothingToRideOnItLeavesAloneAndIsNotAcknowledgedItself) {
  a->send(1, 1);
  deliver_all();
  EXPECT_EQ(a->sessions.unacknowledged(), 1u);
  world.advance(std::chrono::milliseconds(5));
  ASSERT_EQ(network.in_flight().size(), 1u);
  EXPECT_EQ(network.in_flight()[0].frame.header.kind, FrameKind::ack);
  EXPECT_EQ(network.in_flight()[0].frame.header.sequence, 0u);
  deliver_all();
  EXPECT_EQ(a->sessions.unacknowledged(), 0u);
  world.advance(std::chrono::milliseconds(100));
  EXPECT_TRUE(network.in_flight().empty());
}

TEST_F(SessionTest, HalfAWindowIsAcknowledgedAtOnce) {
  for (const uint64_t number : numbers(0, window_frames / 2)) a->send(1, number);
  deliver_all();
  EXPECT_EQ(a->sessions.unacknowledged(), 0u);
}

TEST_F(SessionTest, AHurriedSessionAcknowledgesInItsNextTurn) {
  b->sessions.acknowledge_at_once();
  a->send(1, 1);
  deliver_all();
  world.advance(Duration(0));
  deliver_all();
  EXPECT_EQ(a->sessions.unacknowledged(), 0u);
}

TEST_F(SessionTest, AGapIsNotAcknowledgedOver) {
  // Frames 2 … 4 arrive before 1: nothing is acknowledged until it is there.
  for (const uint64_t number : numbers(0, 4)) a->send(1, number);
  const auto first = network.take(0);
  deliver_all();
  world.advance(std::chrono::milliseconds(10));
  deliver_all();
  EXPECT_EQ(b->received, numbers(1, 4));
  EXPECT_EQ(a->sessions.unacknowledged(), 4u);
  network.put(first);
  deliver_all();
  world.advance(std::chrono::milliseconds(10));
  deliver_all();
  EXPECT_EQ(a->sessions.unacknowledged(), 0u);
  EXPECT_EQ(b->received.back(), 0u);
}

TEST_F(SessionTest, ProgressIsReportedWhenTheLastFrameIsAcknowledged) {
  int progress = 0;
  a->runtime->post([&] { a->sessions.set_on_progress([&] { ++progress; }); });
  std::vector<int> order;
  a->send(1, SessionEnd::message(1), {.on_acknowledged = [&] { order.push_back(1); }});
  a->send(1, SessionEnd::message(2),
          {.of_shutdown = true, .on_acknowledged = [&] { order.push_back(2); }});
  EXPECT_FALSE(a->sessions.all_acknowledged());
  EXPECT_FALSE(a->sessions.flushed());
  deliver_all();
  world.advance(std::chrono::milliseconds(5));
  deliver_all();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_GT(progress, 0);
  EXPECT_TRUE(a->sessions.all_acknowledged());
  EXPECT_TRUE(a->sessions.flushed());
}

TEST_F(SessionTest, WhatBelongsToTheShutdownDoesNotKeepItBusy) {
  a->send(1, SessionEnd::message(2), {.of_shutdown = true});
  EXPECT_TRUE(a->sessions.all_acknowledged());
  EXPECT_FALSE(a->sessions.flushed());
}

// ---- the window ----

TEST_F(SessionTest, CallsWaitForRoomAndAnswersDoNot) {
  // A full window holds calls back, in order, and lets everything else pass.
  for (uint64_t number = 0; number < window_frames + 3; ++number)
    a->send(1, SessionEnd::call(number), {.waits_for_room = true});
  EXPECT_EQ(network.in_flight().size(), window_frames);
  EXPECT_EQ(a->trace.marked("a message waits for room"), 3u);
  a->send(1, 999);
  EXPECT_EQ(network.in_flight().size(), window_frames + 1);
  deliver_all();
  world.advance(std::chrono::milliseconds(5));
  deliver_all();
  std::vector<uint64_t> expected = numbers(0, window_frames);
  expected.push_back(999);
  for (const uint64_t number : numbers(window_frames, window_frames + 3))
    expected.push_back(number);
  EXPECT_EQ(b->received, expected);
}

TEST_F(SessionTest, TheWindowCountsBytesToo) {
  // The second large call waits for the first to be acknowledged; a small one waits for neither.
  window_bytes = 100'000;
  a = begin(0, 101);
  connect();
  for (const uint64_t number : {1, 2}) {
    Call large{.id = CallId{SessionEnd::id(number)}};
    large.arguments.values = std::string(150'000, 'x');
    a->send(1, Message{large}, {.waits_for_room = true});
  }
  a->send(1, SessionEnd::call(3), {.waits_for_room = true});
  EXPECT_EQ(network.in_flight().size(), 2u);
  deliver_all();
  world.advance(std::chrono::milliseconds(5));
  deliver_all();
  EXPECT_EQ(b->received, (std::vector<uint64_t>{1, 3, 2}));
}

TEST_F(SessionTest, ACallThatWaitsCanBeWithdrawnAndOneOnItsWayCannot) {
  int withdrawn = 0;
  for (uint64_t number = 0; number < window_frames + 2; ++number)
    a->send(1, SessionEnd::call(number),
            {.waits_for_room = true, .on_withdrawn = [&] { ++withdrawn; }});
  a->runtime->post([&] {
    EXPECT_FALSE(a->sessions.withdraw(WorkerId{1}, CallId{SessionEnd::id(0)}));
    EXPECT_TRUE(a->sessions.withdraw(WorkerId{1}, CallId{SessionEnd::id(window_frames)}));
    EXPECT_FALSE(a->sessions.withdraw(WorkerId{1}, CallId{SessionEnd::id(window_frames)}));
    EXPECT_FALSE(a->sessions.withdraw(WorkerId{0}, CallId{SessionEnd::id(0)}));
  });
  EXPECT_EQ(withdrawn, 1);
  deliver_all();
  world.advance(std::chrono::milliseconds(5));
  deliver_all();
  std::vector<uint64_t> expected = numbers(0, window_frames);
  expected.push_back(window_frames + 1);
  EXPECT_EQ(b->received, expected);
  EXPECT_EQ(withdrawn, 1);
}

TEST_F(SessionTest, InAGroupMessagesWaitUntilTheirReceiverServes) {
  // Those that make the group do not, in each of its lives.
  grouped = true;
  a = begin(0, 101);
  connect();
  for (const uint64_t life : {300, 301}) {
    b = begin(1, life);
    connect();
    a->send(1, 1);
    a->send(1, SessionEnd::call(2), {.waits_for_room = true});
    EXPECT_EQ(a->trace.marked("a message waits until its receiver serves"), 2 * (life - 299));
    EXPECT_FALSE(a->sessions.all_acknowledged());
    EXPECT_TRUE(network.in_flight().empty());
    a->send(1, Message{Ready{}});
    deliver_all();
    ASSERT_EQ(b->messages.size(), 1u);
    EXPECT_EQ(b->messages[0].second.type(), Message{Ready{}}.type());
    a->runtime->post([&] { a->sessions.begin_to_serve(WorkerId{1}); });
    a->send(1, 3);
    deliver_all();
    EXPECT_EQ(b->received, (std::vector<uint64_t>{0, 1, 2, 3}));
  }
}

TEST_F(SessionTest, AReferenceIsPassedOnByItsMakerOnceItsOwnerServesOrIsLost) {
  // Were its maker lost before the owner has met it, nobody would tell who got the reference.
  grouped = true;
  names = {"a", "b", "c"};
  for (const bool serves : {true, false}) {
    const uint64_t life = serves ? 101 : 102;
    a = begin(0, life);
    b = begin(1, life + 100);
    (void)begin(2, life + 200);
    connect();
    network.connect(0, 2);
    a->runtime->post([&] { a->sessions.begin_to_serve(WorkerId{1}); });
    for (const uint64_t maker : {uint64_t{7}, life}) {
      Call call{.id = CallId{SessionEnd::id(maker)}};
      call.arguments.forks = {{.rref = {.causal = {{maker}, {1, 1}, 1},
                                        .owner = {2},
                                        .owner_incarnation = {life + 200}},
                               .id = ForkId{{{maker}, {1, 1}, 2}}}};
      a->send(1, Message{call}, {.waits_for_room = true});
    }
    a->send(1, SessionEnd::call(8), {.waits_for_room = true});  // It need not wait with them.
    deliver_all();
    EXPECT_EQ(b->received, (std::vector<uint64_t>{7, 8}));
    if (serves)
      a->runtime->post([&] { a->sessions.begin_to_serve(WorkerId{2}); });
    else
      a->fence(2, {.kind = ErrorKind::peer_lost, .text = "silent", .worker = "c"});
    deliver_all();
    EXPECT_EQ(b->received, (std::vector<uint64_t>{7, 8, life}));
  }
}

TEST_F(SessionTest, MessagesToAPeerThatWasNeverMetWaitForIt) {
  b = begin(1, 300);
  a = begin(0, 101);
  a->send(1, 1);
  a->send(1, SessionEnd::call(2), {.waits_for_room = true});
  EXPECT_FALSE(a->sessions.joined(WorkerId{1}));
  EXPECT_TRUE(network.in_flight().empty());
  connect();
  deliver_all();
  EXPECT_EQ(b->received, (std::vector<uint64_t>{1, 2}));
  EXPECT_TRUE(a->sessions.joined(WorkerId{1}));
  EXPECT_EQ(a->sessions.incarnation(WorkerId{1}), Incarnation{300});
  EXPECT_EQ(a->sessions.incarnation(WorkerId{0}), Incarnation{101});
}

TEST_F(SessionTest, ADrainedTransportIsTraced) {
  a->runtime->post([&] { a->sessions.on_drained(WorkerId{1}); });
  EXPECT_EQ(a->trace.count(EventKind::drained), 1u);
}

}  // namespace
}  // namespace rehearsal
