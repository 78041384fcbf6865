#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/short_text.h"
#include "tests/core/session/session_fixture.h"

namespace rehearsal {
namespace {

class SessionFencingTest : public SessionFixture {
 protected:
  static Error lost() { return {.kind = ErrorKind::peer_lost, .text = "given up", .worker = "b"}; }
};

// ---- fencing ----

TEST_F(SessionFencingTest, BothSidesRefuseEachOtherOnceOneHasFenced) {
  // a fences b: a reports it at once, b when it is told; nothing passes any more.
  a->send(1, 1);
  a->fence(1, lost());
  ASSERT_EQ(a->fenced.size(), 1u);
  EXPECT_EQ(a->fenced[0].incarnation, Incarnation{200});
  EXPECT_EQ(a->fenced[0].why, lost());
  EXPECT_EQ(*a->sessions.lost(WorkerId{1}), lost());
  EXPECT_FALSE(a->sessions.joined(WorkerId{1}));
  EXPECT_EQ(a->sessions.unacknowledged(), 0u);
  EXPECT_TRUE(b->fenced.empty());
  deliver_all();
  ASSERT_EQ(b->fenced.size(), 1u);
  EXPECT_EQ(b->fenced[0].why.kind, ErrorKind::fenced);
  EXPECT_EQ(b->fenced[0].why.worker, "a");
  EXPECT_EQ(b->fenced[0].incarnation, Incarnation{100});
  EXPECT_EQ(a->sessions.fenced(), (std::vector<Incarnation>{{200}}));
}

TEST_F(SessionFencingTest, AReasonIsToldInAsFewBytesAsAnyTransportTakes) {
  // Goal: why a peer is fenced, or refused, is a short text on its way, however long it is here.
  // Method: a reason of two MiB, for each.
  Error why = lost();
  why.text = std::string(2 << 20, 'w');
  a->fence(1, why);
  deliver_all();
  ASSERT_EQ(b->fenced.size(), 1u);
  EXPECT_TRUE(b->fenced[0].why.text.starts_with("fenced by 'a': www"));
  EXPECT_TRUE(b->fenced[0].why.text.ends_with(" bytes more"));
  EXPECT_LE(b->fenced[0].why.text.size(), kErrorTextMax);
  b = begin(1, 201);
  a->refuse_hello = Error{.kind = ErrorKind::protocol, .text = why.text, .worker = "b"};
  connect();
  EXPECT_EQ(network.end(0).closed().at(WorkerId{1}).text, short_text(why.text));
}

TEST_F(SessionFencingTest, MessagesToAFencedPeerAreWithdrawn) {
  // Those that wait for room, those of later, but not those on their way.
  int withdrawn = 0;
  for (uint64_t number = 0; number <= window_frames; ++number)
    a->send(1, SessionEnd::call(number),
            {.waits_for_room = true, .on_withdrawn = [&] { ++withdrawn; }});
  a->fence(1, lost());
  EXPECT_EQ(withdrawn, 1);
  a->send(1, SessionEnd::call(500), {.on_withdrawn = [&] { ++withdrawn; }});
  EXPECT_EQ(withdrawn, 2);
  EXPECT_EQ(a->trace.all(EventKind::frame_dropped).back().text, "its receiver is lost");
}

TEST_F(SessionFencingTest, FramesOfAFencedOrUnknownIncarnationAreDropped) {
  a->send(1, 1);
  a->send(1, 2);
  const auto first = network.take(0);
  auto other_life = first;
  other_life.frame.header.source = {777};
  auto other_receiver = first;
  other_receiver.frame.header.destination = {777};
  network.put(other_life);
  network.put(other_receiver);
  b->fence(0, lost());
  network.put(first);
  while (!network.in_flight().empty()) network.deliver(0);
  EXPECT_TRUE(b->received.empty());
  EXPECT_EQ(b->trace.count(EventKind::frame_dropped), 4u);
  EXPECT_EQ(b->trace.count(EventKind::frame), 0u);
}

TEST_F(SessionFencingTest, AFencedIncarnationThatComesBackIsTurnedAway) {
  a->fence(1, lost());
  deliver_all();
  connect();
  EXPECT_EQ(network.end(0).closed().at(WorkerId{1}).kind, ErrorKind::fenced);
  EXPECT_FALSE(a->sessions.joined(WorkerId{1}));
  EXPECT_EQ(a->fenced.size(), 1u);
}

TEST_F(SessionFencingTest, AFencedPeerIsWelcomeAsANewIncarnation) {
  // Its numbers start again; nothing of the former life is left.
  a->send(1, 1);
  a->fence(1, lost());
  deliver_all();
  b = begin(1, 201);
  a->send(1, 2);
  connect();
  EXPECT_EQ(a->joined, (std::vector<Incarnation>{{200}, {201}}));
  a->send(1, 3);
  deliver_all();
  EXPECT_EQ(b->received, (std::vector<uint64_t>{3}));
  EXPECT_FALSE(a->sessions.lost(WorkerId{1}).has_value());
}

TEST_F(SessionFencingTest, ANewIncarnationEndsTheOldOneAtOnce) {
  // b restarts unnoticed; what was kept for its former life is not sent to the new one.
  a->send(1, 1);
  b = begin(1, 201);
  cut();
  connect();
  ASSERT_EQ(a->fenced.size(), 1u);
  EXPECT_EQ(a->fenced[0].incarnation, Incarnation{200});
  EXPECT_EQ(a->fenced[0].why.kind, ErrorKind::peer_lost);
  EXPECT_NE(a->fenced[0].why.text.find("new incarnation"), std::string::npos);
  deliver_all();
  EXPECT_TRUE(b->received.empty());
  a->send(1, 2);
  deliver_all();
  EXPECT_EQ(b->received, (std::vector<uint64_t>{2}));
}

TEST_F(SessionFencingTest, AHelloThatDoesNotFitIsRefusedAndReported) {
  b = begin(1, 201);
  a = begin(0, 101);
  a->refuse_hello = Error{.kind = ErrorKind::protocol, .text = "another registry", .worker = "b"};
  connect();
  EXPECT_EQ(a->refused.at(0).text, "another registry");
  EXPECT_TRUE(a->joined.empty());
  EXPECT_EQ(network.end(0).closed().at(WorkerId{1}).text, "another registry");
  deliver_all();
  // b had met a already: for it a is lost, with the reason.
  EXPECT_EQ(b->fenced.at(0).why.text, "another registry");
}

TEST_F(SessionFencingTest, AnEarlierLifeOfAPeerIsClosedAndTheLinkStaysWanted) {
  // Its hello arrives late: nobody's joining fails for it, and the present life may connect.
  a->refuse_hello = Error{.kind = ErrorKind::fenced, .text = "it has started again", .worker = "b"};
  b = begin(1, 201);
  connect();
  EXPECT_TRUE(a->refused.empty());
  EXPECT_EQ(a->joined, (std::vector<Incarnation>{{200}}));
  EXPECT_TRUE(a->fenced.empty());
  EXPECT_EQ(network.end(0).closed().at(WorkerId{1}).text, "it has started again");
  EXPECT_TRUE(network.end(0).opened(WorkerId{1}));
  EXPECT_EQ(a->trace.marked("a link to an earlier life of a peer"), 1u);
  a->refuse_hello.reset();
  b = begin(1, 202);
  connect();
  EXPECT_EQ(a->joined, (std::vector<Incarnation>{{200}, {202}}));
  b->send(0, 7);
  deliver_all();
  EXPECT_EQ(a->received, std::vector<uint64_t>{7});
}

TEST_F(SessionFencingTest, ACloseBeforeTheyMetIsARefusal) {
  b = begin(1, 201);
  const Error why{.kind = ErrorKind::protocol, .text = "you do not fit", .worker = "a"};
  b->runtime->post([&] { b->sessions.on_peer_lost(WorkerId{0}, why, true); });
  EXPECT_EQ(b->refused.at(0).text, "you do not fit");
}

// ---- silence ----

TEST_F(SessionFencingTest, AnIdleLinkBeatsAndIsNotFenced) {
  // Ten times the peer's time-out, with a network that delivers: nobody is given up.
  world.set_idle([&] { return network.deliver_first(); });
  world.advance(kPeerTimeout * 10);
  EXPECT_TRUE(a->fenced.empty());
  EXPECT_TRUE(b->fenced.empty());
  EXPECT_GT(a->trace.count(EventKind::ack_frame), 100u);
}

TEST_F(SessionFencingTest, ASilentPeerIsFencedWithinItsTimeoutAndTwoTicks) {
  // b hears nothing because all is kept in flight; so neither does a.
  world.advance(kPeerTimeout - kHeartbeat);
  EXPECT_TRUE(a->fenced.empty());
  world.advance(kHeartbeat * 3);
  ASSERT_EQ(a->fenced.size(), 1u);
  EXPECT_EQ(a->fenced[0].why.kind, ErrorKind::peer_lost);
  EXPECT_EQ(a->fenced[0].why.worker, "b");
  EXPECT_NE(a->fenced[0].why.text.find("nothing was heard of it for 8"), std::string::npos);
  EXPECT_EQ(a->trace.count(EventKind::peer_fenced), 1u);
}

TEST_F(SessionFencingTest, ALinkThatIsDownCountsAsSilence) {
  cut();
  world.advance(kPeerTimeout / 2);
  connect();
  world.advance(kPeerTimeout / 2 + kHeartbeat);
  EXPECT_TRUE(a->fenced.empty());
  cut();
  world.advance(kPeerTimeout + 3 * kHeartbeat);
  EXPECT_EQ(a->fenced.size(), 1u);
  EXPECT_EQ(b->fenced.size(), 1u);
}

TEST_F(SessionFencingTest, WithoutFencingASilentPeerIsNeverGivenUp) {
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  mutants.turn_on(Mutant::no_fencing);
  a = begin(0, 101);
  connect();
  world.advance(kPeerTimeout * 10);
  EXPECT_TRUE(a->fenced.empty());
}

TEST_F(SessionFencingTest, APeerThatIsLeavingMayBeSilent) {
  a->sessions.expect_silence(WorkerId{1});
  world.advance(kPeerTimeout * 3);
  EXPECT_TRUE(a->fenced.empty());
  EXPECT_EQ(b->fenced.size(), 1u);
}

TEST_F(SessionFencingTest, AWorkerThatWasPausedBlamesNobody) {
  // Time jumps over three time-outs with no tick between; then its peers are heard again.
  world.pause(kPeerTimeout * 3);
  world.set_idle([&] { return network.deliver_first(); });
  world.advance(kPeerTimeout);
  EXPECT_TRUE(a->fenced.empty());
  EXPECT_TRUE(b->fenced.empty());
}

TEST_F(SessionFencingTest, AfterStopNothingIsSentReceivedOrTimed) {
  a->send(1, 1);
  b->send(0, 1);
  deliver_all();
  a->runtime->post([&] { a->sessions.stop(); });
  b->runtime->post([&] { b->sessions.stop(); });
  EXPECT_EQ(world.timers(), 0u);
  b->send(0, 2);
  EXPECT_TRUE(network.in_flight().empty());
  a->send(1, 3);
  cut();
  connect();
  deliver_all();
  EXPECT_EQ(b->received, (std::vector<uint64_t>{1}));
  world.advance(kPeerTimeout * 2);
  EXPECT_TRUE(a->fenced.empty());
}

// ---- peers that break the protocol ----

TEST_F(SessionFencingTest, AMessageThatCannotBeReadFencesItsSender) {
  a->send(1, 1);
  auto item = network.take(0);
  auto body = std::make_shared<FrameBody>();
  body->envelope = "\xff\xff\xff";
  item.frame.body = body;
  network.put(item);
  deliver_all();
  ASSERT_EQ(b->fenced.size(), 1u);
  EXPECT_EQ(b->fenced[0].why.kind, ErrorKind::protocol);
  EXPECT_EQ(b->fenced[0].why.worker, "a");
}

TEST_F(SessionFencingTest, AnAcknowledgementOfWhatWasNeverSentFencesItsSender) {
  a->send(1, 1);
  auto item = network.take(0);
  item.frame.header.acknowledged = 1;
  network.put(item);
  deliver_all();
  EXPECT_EQ(b->fenced.at(0).why.kind, ErrorKind::protocol);
  EXPECT_TRUE(b->received.empty());
}

TEST_F(SessionFencingTest, APeerThatLeavesOutMoreFramesThanItMayIsFenced) {
  // Every other frame of a's, of which three gaps are allowed.
  limits.gaps = 3;
  b = begin(1, 201);
  connect();
  deliver_all();
  const auto body = make_protobuf_codec()->encode(SessionEnd::message(1));
  const auto arrives = [&](uint64_t sequence) {
    b->runtime->post([&] {
      b->sessions.on_frame(
          WorkerId{0},
          {.header = {.source = {100}, .destination = {201}, .sequence = sequence}, .body = body});
    });
  };
  for (const uint64_t sequence : {2, 4, 6, 3, 8, 5, 10}) arrives(sequence);
  EXPECT_TRUE(b->fenced.empty());
  EXPECT_EQ(b->sessions.gaps_peak(), 3u);
  arrives(12);
  ASSERT_EQ(b->fenced.size(), 1u);
  EXPECT_EQ(b->fenced[0].why.kind, ErrorKind::protocol);
  EXPECT_NE(b->fenced[0].why.text.find("broke the protocol: Frame.sequence"), std::string::npos);
  EXPECT_EQ(b->received.size(), 7u);
  EXPECT_TRUE(b->sessions.all_received(WorkerId{0}));  // Nothing of it stays.
}

TEST_F(SessionFencingTest, AMessageFrameWithoutABodyFencesItsSender) {
  a->send(1, 1);
  auto item = network.take(0);
  item.frame.body = nullptr;
  network.put(item);
  deliver_all();
  EXPECT_EQ(b->fenced.at(0).why.kind, ErrorKind::protocol);
}

TEST_F(SessionFencingTest, AFrameThatSaysFencedFencesItsSender) {
  a->send(1, 1);
  auto item = network.take(0);
  item.frame = {.header = {.kind = FrameKind::fenced, .source = {100}, .destination = {200}},
                .body = nullptr};
  network.put(item);
  deliver_all();
  EXPECT_EQ(b->fenced.at(0).why.kind, ErrorKind::fenced);
}

}  // namespace
}  // namespace rehearsal
