// Links that break after a few frames, again and again. See Note [Links that do not live long].
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/core/session/session_fixture.h"

namespace rehearsal {
namespace {

using std::chrono::milliseconds;

class ShortLinksTest : public SessionFixture {
 protected:
  void send_large(uint64_t number) {
    Call large{.id = CallId{SessionEnd::id(number)}};
    large.arguments.values = std::string(100'000, 'x');
    a->send(1, Message{large});
  }
  [[nodiscard]] std::vector<FrameHeader> in_flight_from(uint32_t from) const {
    std::vector<FrameHeader> headers;
    for (const auto& item : network.in_flight())
      if (item.from == WorkerId{from}) headers.push_back(item.frame.header);
    return headers;
  }
  [[nodiscard]] size_t messages_from(uint32_t from) const {
    const auto headers = in_flight_from(from);
    return static_cast<size_t>(
        std::count_if(headers.begin(), headers.end(),
                      [](const FrameHeader& header) { return header.kind == FrameKind::message; }));
  }
  // A link on which the first frame of each end gets through, and no other.
  void live_for_one_frame() {
    connect();
    for (const uint32_t from : {0u, 1u}) {
      std::vector<doubles::ScriptedNetwork::InFlight> of_this_end;
      for (size_t at = 0; at < network.in_flight().size();)
        if (network.in_flight()[at].from == WorkerId{from})
          of_this_end.push_back(network.take(at));
        else
          ++at;
      if (of_this_end.empty()) continue;
      network.put(of_this_end[0]);
    }
    for (size_t first_frames = network.in_flight().size(); first_frames > 0; --first_frames)
      network.deliver(0);
    cut();
  }
  [[nodiscard]] Position position_of(uint32_t from, uint32_t to) const {
    return network.hello(from, to).position;
  }
};

TEST_F(ShortLinksTest, ALinkThatIsMadeAgainBeginsWithWhatHasArrived) {
  // The hello of each end says it, with the last number of each lane; one message follows, no more.
  for (const uint64_t number : numbers(0, 6)) a->send(1, number);
  network.deliver(0);
  network.deliver(0);
  send_large(6);
  network.deliver(network.in_flight().size() - 1);
  cut();
  const Position of_b = position_of(1, 0);
  EXPECT_EQ(of_b.source, Incarnation{100});
  EXPECT_EQ(of_b.acknowledged, 2u);
  EXPECT_EQ(of_b.received, (std::array<uint64_t, 2>{2, 7}));
  connect();
  EXPECT_TRUE(in_flight_from(1).empty());
  const std::vector<FrameHeader> of_a = in_flight_from(0);
  ASSERT_EQ(of_a.size(), 1u);
  EXPECT_EQ(of_a[0].sequence, 3u);
  // Once b has told that this one is there, a goes on with what has not arrived; the large one has.
  deliver_next_from(0);
  deliver_next_from(1);
  std::vector<uint64_t> sent;
  for (const FrameHeader& header : in_flight_from(0)) sent.push_back(header.sequence);
  EXPECT_EQ(sent, (std::vector<uint64_t>{4, 5, 6}));
}

TEST_F(ShortLinksTest, APositionThatCannotBeEndsThePair) {
  // A peer that has received what was never sent is no peer of ours.
  Hello wrong = network.hello(1, 0);
  wrong.position.received = {0, 1};
  a->runtime->post([&] { a->sessions.on_peer_up(wrong); });
  ASSERT_EQ(a->fenced.size(), 1u);
  EXPECT_EQ(a->fenced[0].why.kind, ErrorKind::protocol);
  EXPECT_EQ(a->fenced[0].why.text, "worker 'b' has received what was never sent");
}

TEST_F(ShortLinksTest, APositionAboutAFormerLifeSaysNothing) {
  // b knows a's former life. a, which has met b, sends its first message on the next link.
  for (const uint64_t number : numbers(0, 5)) a->send(1, number);
  deliver_all();
  cut();
  a = begin(0, 101);
  network.connect_one_end(0, 1);
  a->send(1, 7);
  cut();
  EXPECT_EQ(position_of(1, 0).source, Incarnation{100});
  EXPECT_EQ(position_of(1, 0).acknowledged, 5u);
  connect();
  deliver_all();
  EXPECT_TRUE(a->fenced.empty());
  EXPECT_EQ(b->received.back(), 7u);
}

TEST_F(ShortLinksTest, TheHelloAcknowledgesToo) {
  // All has arrived, and the link breaks before b has said so: the next one needs no frame for it.
  for (const uint64_t number : numbers(0, 3)) a->send(1, number);
  while (deliver_next_from(0)) {
  }
  cut();
  EXPECT_EQ(a->sessions.unacknowledged(), 3u);
  connect();
  EXPECT_EQ(a->sessions.unacknowledged(), 0u);
  EXPECT_TRUE(b->sessions.flushed());
  world.advance(milliseconds(5));
  EXPECT_TRUE(network.in_flight().empty());
}

TEST_F(ShortLinksTest, AFreshLinkSaysNothingExtraAndHoldsNothingBack) {
  b = begin(1, 201);
  cut();
  connect();
  EXPECT_TRUE(network.in_flight().empty());
  for (const uint64_t number : numbers(0, 20)) a->send(1, number);
  EXPECT_EQ(messages_from(0), 20u);
}

TEST_F(ShortLinksTest, TheBacklogLeavesAFewMessagesAtATime) {
  // 50 wait. One leaves; once b has told that it is there 4 do, and two more for each that arrives.
  cut();
  for (const uint64_t number : numbers(0, 50)) a->send(1, number);
  connect();
  EXPECT_EQ(messages_from(0), 1u);
  while (deliver_next_from(0)) {
  }
  deliver_next_from(1);
  EXPECT_EQ(messages_from(0), 4u);
  while (deliver_next_from(0)) {
  }
  EXPECT_EQ(b->received, numbers(0, 5));
  while (deliver_next_from(1)) {
  }
  EXPECT_EQ(messages_from(0), 8u);
  EXPECT_EQ(a->trace.count(EventKind::frame_resent), 13u);
  for (int round = 0; round < 3; ++round) {
    deliver_all();
    world.advance(milliseconds(5));
  }
  EXPECT_EQ(b->received, numbers(0, 50));
  EXPECT_EQ(a->sessions.unacknowledged(), 0u);
}

TEST_F(ShortLinksTest, ALinkAfterOneThatCarriedManyBeginsWithHalfAsMany) {
  // Trust is what the link before has carried, and is lost with one that carries little. Method: 40
  // messages pass on the first link, one on the second.
  for (const uint64_t number : numbers(0, 40)) a->send(1, number);
  deliver_all();
  cut();
  for (const uint64_t number : numbers(40, 100)) a->send(1, number);
  connect();
  EXPECT_EQ(messages_from(0), 20u);
  while (b->received.size() < 41) ASSERT_TRUE(deliver_next_from(0));
  cut();
  connect();
  EXPECT_EQ(messages_from(0), 1u);
}

TEST_F(ShortLinksTest, WhatIsSentMeanwhileWaitsForItsTurn) {
  // A new message does not overtake those that are sent again.
  cut();
  for (const uint64_t number : numbers(0, 3)) a->send(1, number);
  connect();
  a->send(1, 3);
  EXPECT_EQ(messages_from(0), 1u);
  deliver_all();
  EXPECT_EQ(b->received, numbers(0, 4));
  EXPECT_EQ(b->trace.count(EventKind::frame_dropped), 0u);
}

TEST_F(ShortLinksTest, EveryLinkThatCarriesOneFrameEachWayBringsBothSidesForward) {
  // 20 messages each way; a link carries the first frame of each end, then breaks.
  cut();
  for (const uint64_t number : numbers(0, 20)) {
    a->send(1, number);
    b->send(0, 100 + number);
  }
  for (size_t link = 1; link <= 20; ++link) {
    live_for_one_frame();
    EXPECT_EQ(b->received.size(), link);
    EXPECT_EQ(a->received.size(), link);
  }
  EXPECT_EQ(a->trace.count(EventKind::frame_dropped), 0u);
  EXPECT_EQ(b->received, numbers(0, 20));
  EXPECT_EQ(a->received, numbers(100, 120));
  EXPECT_TRUE(a->fenced.empty());
}

TEST_F(ShortLinksTest, SmallMessagesGoOnBesideALargeOneThatNeverArrives) {
  // The large one is lost on every link; the small ones behind it are neither lost nor repeated.
  cut();
  send_large(0);
  for (const uint64_t number : numbers(1, 10)) a->send(1, number);
  for (size_t link = 0; link < 6; ++link) {
    connect();
    for (size_t at = 0; at < network.in_flight().size();)
      if (network.in_flight()[at].frame.bytes() > kSmallFrameBytes)
        (void)network.take(at);
      else
        network.deliver(at);
    cut();
  }
  EXPECT_EQ(b->received, numbers(1, 10));
  EXPECT_LE(b->trace.count(EventKind::frame_dropped), 2u);
  connect();
  deliver_all();
  EXPECT_EQ(b->received.back(), 0u);
  EXPECT_EQ(b->received.size(), 10u);
}

TEST_F(ShortLinksTest, APeerThatHasNotMetUsHasReceivedNothing) {
  // a has met b; b, which has not heard of that link, begins with the second one.
  b = begin(1, 201);
  cut();
  network.connect_one_end(0, 1);
  send_large(7);
  cut();
  EXPECT_EQ(position_of(1, 0).source, Incarnation{});
  connect();
  EXPECT_EQ(messages_from(0), 1u);
  deliver_all();
  EXPECT_EQ(b->received, (std::vector<uint64_t>{7}));
}

TEST_F(ShortLinksTest, APeerThatNothingReachesIsGivenUpWithTheSizeOfWhatDidNotPass) {
  // Links come up again and again, and each breaks before the large message has passed.
  send_large(1);
  const Instant begin = world.now();
  while (a->fenced.empty() && world.now() < begin + 3 * kPeerTimeout) {
    cut();
    world.advance(milliseconds(500));
    connect();
  }
  ASSERT_EQ(a->fenced.size(), 1u);
  EXPECT_TRUE(b->received.empty());
  const std::string& why = a->fenced[0].why.text;
  EXPECT_EQ(a->fenced[0].why.kind, ErrorKind::peer_lost);
  EXPECT_NE(why.find("worker 'b' was lost: the last "), std::string::npos) << why;
  EXPECT_NE(why.find("before anything had passed; the largest message on its way had 100"),
            std::string::npos)
      << why;
  EXPECT_GE(world.now() - begin, kPeerTimeout);
}

TEST_F(ShortLinksTest, APeerIsKeptAsLongAsSomethingPasses) {
  // The same, but a small message passes now and then.
  send_large(1);
  for (uint64_t round = 0; round < 100; ++round) {
    cut();
    world.advance(milliseconds(500));
    if (round % 10 == 0) a->send(1, 100 + round);
    connect();
    for (size_t at = 0; at < network.in_flight().size();)
      if (network.in_flight()[at].frame.bytes() > kSmallFrameBytes)
        (void)network.take(at);
      else
        network.deliver(at);
  }
  EXPECT_TRUE(a->fenced.empty());
  EXPECT_EQ(b->received.size(), 10u);
}

TEST_F(ShortLinksTest, WithoutThePositionOrThePaceShortLinksBringNothingForward) {
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  // Each switch leaves out exactly its rule.
  for (const Mutant mutant : {Mutant::position_not_told, Mutant::backlog_in_one_burst}) {
    mutants = {};
    mutants.turn_on(mutant);
    a = begin(0, 300 + static_cast<uint64_t>(mutant));
    b = begin(1, 400 + static_cast<uint64_t>(mutant));
    connect();
    cut();
    for (const uint64_t number : numbers(0, 30)) a->send(1, number);
    EXPECT_EQ(position_of(1, 0).source.value == 0, mutant == Mutant::position_not_told);
    connect();
    EXPECT_EQ(messages_from(0), mutant == Mutant::backlog_in_one_burst ? 30u : 4u);
    cut();
  }
}

// ---- refused connections ----

class RefusalTest : public SessionFixture {
 protected:
  void refuse(uint64_t count, Duration lasting) {
    a->runtime->post([&] { a->sessions.on_refused(WorkerId{1}, {count, lasting}); });
  }
};

TEST_F(RefusalTest, APeerWhosePortRefusesForLongEnoughHasEnded) {
  // Not a moment earlier, and long before its silence would tell.
  cut();
  refuse(1, {});
  refuse(9, kRefusalLimit - milliseconds(1));
  EXPECT_EQ(a->trace.marked("a peer refuses connections"), 2u);
  EXPECT_TRUE(a->fenced.empty());
  refuse(10, kRefusalLimit);
  ASSERT_EQ(a->fenced.size(), 1u);
  EXPECT_EQ(a->fenced[0].why.kind, ErrorKind::peer_lost);
  EXPECT_EQ(a->fenced[0].why.worker, "b");
  EXPECT_EQ(a->fenced[0].why.text,
            "worker 'b' has ended: its port refuses connections (10 in 1500 ms)");
  // It may come back as a new life.
  b = begin(1, 201);
  connect();
  EXPECT_FALSE(a->sessions.lost(WorkerId{1}).has_value());
}

TEST_F(RefusalTest, FewRefusalsProveNothingHoweverFarApart) {
  // As after a worker was stopped itself between two attempts.
  cut();
  refuse(2, 100 * kRefusalLimit);
  EXPECT_TRUE(a->fenced.empty());
}

TEST_F(RefusalTest, RefusalsProveNothingOfWhoIsThereIsUnknownOrMayHaveLeft) {
  refuse(10, kRefusalLimit);  // The link stands.
  cut();
  a->peer_may_have_left = true;
  refuse(10, kRefusalLimit);
  a->peer_may_have_left = false;
  a->runtime->post([&] { a->sessions.expect_silence(WorkerId{1}); });
  refuse(10, kRefusalLimit);
  EXPECT_TRUE(a->fenced.empty());
  a = begin(0, 101);  // It has not met b: its port may not be open yet.
  refuse(10, kRefusalLimit);
  EXPECT_TRUE(a->fenced.empty());
}

TEST_F(RefusalTest, WithoutALimitOnlySilenceCounts) {
  refusal_limit = {};
  a = begin(0, 101);
  connect();
  cut();
  refuse(1000, 100 * kRefusalLimit);
  EXPECT_TRUE(a->fenced.empty());
}

TEST_F(RefusalTest, OneRefusalIsTakenForDeathByAMutantOnly) {
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  mutants.turn_on(Mutant::one_refusal_is_death);
  a = begin(0, 101);
  connect();
  cut();
  refuse(1, {});
  EXPECT_EQ(a->fenced.size(), 1u);
}

}  // namespace
}  // namespace rehearsal
