#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/transport.h"
#include "tests/conformance/recording_sink.h"
#include "tests/conformance/transport_fixture.h"

// The requirements on every Transport, whatever is below it. Instantiate it with a World:
//
//   INSTANTIATE_TYPED_TEST_SUITE_P(Name, TransportSuite, World);
//
// A World is two workers, 0 and 1, whose transports are started and have opened nothing:
//   Transport& transport(int end);
//   RecordingSink& sink(int end);           // what the transport of `end` reports to
//   Hello hello(int end);                   // of its present life
//   void run(int end, Task task);           // on the strand of `end`; returns when it has run
//   bool advance_until(const std::function<bool()>& holds);  // false: not within a fair time
//   void advance(Duration time);            // time passes
//   void reset_link();                      // what stands between them breaks
//   void set_blocked(bool blocked);         // nothing passes, nothing is said
//   void set_refusing(bool refusing);       // attempts to connect are refused
//   void crash(int end);                    // that process is gone, without a goodbye
//   void restart(int end);                  // it is there again, as a new incarnation
//   uint64_t segments_taken(int end);       // from that end's BufferPool
namespace rehearsal::conformance {

TYPED_TEST_SUITE_P(TransportSuite);

// Making a link.

TYPED_TEST_P(TransportSuite, BothEndsHearOfALinkWithTheOthersHello) {
  this->connect();
  for (const int end : {0, 1}) {
    const Hello heard = this->world.sink(end).last(What::up).hello;
    const Hello said = this->world.hello(1 - end);
    EXPECT_EQ(heard.worker, said.worker);
    EXPECT_EQ(heard.incarnation, said.incarnation);
    EXPECT_EQ(heard.greeting, said.greeting);
    EXPECT_EQ(this->world.sink(end).count(What::up), 1u);
  }
}

TYPED_TEST_P(TransportSuite, OpeningAgainHasNoEffect) {
  this->connect();
  this->open(0);
  this->open(1);
  this->send(0, small_frame(1));
  ASSERT_TRUE(this->arrived(1, 1));
  EXPECT_EQ(this->world.sink(0).count(What::up), 1u);
  EXPECT_EQ(this->world.sink(1).count(What::up), 1u);
  EXPECT_EQ(this->world.sink(0).count(What::lost), 0u);
}

TYPED_TEST_P(TransportSuite, ALinkIsMadeHoweverLateTheOtherEndOpens) {
  this->open(0);
  this->world.advance(std::chrono::milliseconds(300));
  this->open(1);
  EXPECT_TRUE(this->both_up());
}

TYPED_TEST_P(TransportSuite, RefusedAttemptsAreRepeatedUntilOneSucceeds) {
  this->world.set_refusing(true);
  this->open(0);
  this->open(1);
  this->world.advance(std::chrono::milliseconds(200));
  EXPECT_FALSE(this->world.sink(0).up());
  EXPECT_FALSE(this->world.sink(1).up());
  this->world.set_refusing(false);
  EXPECT_TRUE(this->both_up());
}

// Frames.

TYPED_TEST_P(TransportSuite, SmallFramesArriveInOrder) {
  this->connect();
  for (uint64_t i = 1; i <= 500; ++i) this->send(0, small_frame(i, std::to_string(i)));
  ASSERT_TRUE(this->arrived(1, 500));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::small), numbers_from_one(500));
  EXPECT_EQ(this->world.sink(1).frames()[41].body->envelope, "42");
  EXPECT_EQ(this->world.sink(1).count(What::lost), 0u);
}

TYPED_TEST_P(TransportSuite, LargeFramesArriveInOrder) {
  this->connect();
  for (uint64_t i = 1; i <= 20; ++i) this->send(0, large_frame(i));
  ASSERT_TRUE(this->arrived(1, 20));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::large), numbers_from_one(20));
}

TYPED_TEST_P(TransportSuite, EachLaneKeepsItsOwnOrder) {
  this->connect();
  for (uint64_t i = 1; i <= 20; ++i) {
    this->send(0, small_frame(i));
    this->send(0, large_frame(i));
  }
  ASSERT_TRUE(this->arrived(1, 40));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::small), numbers_from_one(20));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::large), numbers_from_one(20));
}

TYPED_TEST_P(TransportSuite, BothDirectionsCarryAtOnce) {
  this->connect();
  for (uint64_t i = 1; i <= 50; ++i) {
    this->send(0, small_frame(i));
    this->send(1, small_frame(i));
  }
  ASSERT_TRUE(this->arrived(0, 50));
  ASSERT_TRUE(this->arrived(1, 50));
  EXPECT_EQ(this->world.sink(0).sequences(Lane::small), numbers_from_one(50));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::small), numbers_from_one(50));
}

TYPED_TEST_P(TransportSuite, HeadersArriveAsTheyWereSent) {
  this->connect();
  const FrameKind kinds[] = {FrameKind::ack, FrameKind::heartbeat, FrameKind::fenced};
  for (const FrameKind kind : kinds) {
    Frame frame;
    frame.header = {
        .kind = kind, .source = {UINT64_MAX}, .destination = {77}, .acknowledged = 123'456'789'012};
    this->send(1, frame);
  }
  ASSERT_TRUE(this->arrived(0, 3));
  const std::vector<Frame> frames = this->world.sink(0).frames();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(frames[i].header.kind, kinds[i]);
    EXPECT_EQ(frames[i].header.source, Incarnation{UINT64_MAX});
    EXPECT_EQ(frames[i].header.destination, Incarnation{77});
    EXPECT_EQ(frames[i].header.acknowledged, 123'456'789'012u);
    EXPECT_EQ(frames[i].bytes(), 0u);
  }
}

TYPED_TEST_P(TransportSuite, SegmentsArriveByteForByteInAlignedMemoryOfThePool) {
  this->connect();
  const Frame sent = frame_with(3, {1, 64, 1000, 0, 40'000});
  this->send(0, sent);
  ASSERT_TRUE(this->arrived(1, 1));
  const Frame frame = this->world.sink(1).frames()[0];
  ASSERT_EQ(frame.body->segments.size(), 5u);
  EXPECT_EQ(frame.body->envelope, "with segments");
  for (size_t i = 0; i < 5; ++i) {
    const Segment& segment = frame.body->segments[i];
    EXPECT_TRUE(same_bytes(segment, sent.body->segments[i])) << i;
    if (segment.bytes == 0) continue;
    EXPECT_NE(segment.data, sent.body->segments[i].data);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(segment.data) % 64, 0u) << i;
  }
  EXPECT_GE(this->world.segments_taken(1), 4u);
  EXPECT_EQ(this->world.segments_taken(0), 0u);
}

TYPED_TEST_P(TransportSuite, ReceiversMayWriteToTheirSegments) {
  this->connect();
  const Frame sent = frame_with(1, {100});
  this->send(0, sent);
  ASSERT_TRUE(this->arrived(1, 1));
  const Frame frame = this->world.sink(1).frames()[0];
  frame.body->segments[0].data[0] = std::byte{0xee};
  EXPECT_EQ(sent.body->segments[0].data[0], std::byte{1});
}

TYPED_TEST_P(TransportSuite, AFrameOfManySegmentsArrives) {
  this->connect();
  this->send(0, frame_with(1, std::vector<uint64_t>(2000, 16)));
  this->send(0, frame_with(2, std::vector<uint64_t>(2000, 160)));
  ASSERT_TRUE(this->arrived(1, 2));
  for (const Frame& frame : this->world.sink(1).frames())
    EXPECT_EQ(frame.body->segments.size(), 2000u);
}

TYPED_TEST_P(TransportSuite, FramesAtTheBorderOfTheLanesArrive) {
  this->connect();
  this->send(0, small_frame(1, std::string(kSmallFrameBytes, 'a')));
  this->send(0, small_frame(2, std::string(kSmallFrameBytes + 1, 'b')));
  ASSERT_TRUE(this->arrived(1, 2));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::small), std::vector<uint64_t>{1});
  EXPECT_EQ(this->world.sink(1).sequences(Lane::large), std::vector<uint64_t>{2});
}

TYPED_TEST_P(TransportSuite, ABodyIsLetGoWhenItHasArrived) {
  this->connect();
  const Frame kept = large_frame(1);
  this->send(0, kept);
  ASSERT_TRUE(this->arrived(1, 1));
  this->world.sink(1).clear();
  EXPECT_TRUE(this->world.advance_until([&kept] { return kept.body.use_count() == 1; }));
}

TYPED_TEST_P(TransportSuite, AnswersSentFromWithinAReportArrive) {
  for (const int end : {0, 1})
    this->world.sink(end).set_reaction([this, end](const RecordingSink::Report& report) {
      if (report.what != What::frame || report.frame.header.sequence >= 100) return;
      this->world.transport(end).send(report.peer, small_frame(report.frame.header.sequence + 1));
    });
  this->connect();
  this->send(0, small_frame(1));
  ASSERT_TRUE(this->arrived(0, 50));
  EXPECT_EQ(this->world.sink(0).last(What::frame).frame.header.sequence, 100u);
}

// Where there is no link.

TYPED_TEST_P(TransportSuite, WhatIsSentBeforeTheLinkStandsIsDropped) {
  this->open(0);
  this->send(0, small_frame(1));
  this->open(1);
  ASSERT_TRUE(this->both_up());
  this->send(0, small_frame(2));
  ASSERT_TRUE(this->arrived(1, 1));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::small), std::vector<uint64_t>{2});
}

TYPED_TEST_P(TransportSuite, SendingToAPeerThatWasNeverOpenedDoesNothing) {
  this->send(0, small_frame(1));
  this->close(0, "nothing to close");
  EXPECT_EQ(this->queued(0), 0u);
  this->connect();
  EXPECT_EQ(this->world.sink(1).count(What::frame), 0u);
}

// Losing a link.

TYPED_TEST_P(TransportSuite, ABrokenLinkIsReportedAndMadeAgain) {
  this->connect();
  this->world.reset_link();
  ASSERT_TRUE(this->reported(0, What::up, 2));
  ASSERT_TRUE(this->reported(1, What::up, 2));
  ASSERT_TRUE(this->both_up());
  EXPECT_FALSE(this->world.sink(0).last(What::lost).closed);
  EXPECT_EQ(this->world.sink(0).last(What::up).hello.incarnation, this->world.hello(1).incarnation);
  this->send(0, small_frame(9));
  this->send(1, small_frame(9));
  EXPECT_TRUE(this->arrived(0, 1));
  EXPECT_TRUE(this->arrived(1, 1));
}

TYPED_TEST_P(TransportSuite, OfABrokenLinkAPrefixOfEachLaneArrivesAndNothingLater) {
  this->connect();
  for (uint64_t i = 1; i <= 50; ++i) {
    this->send(0, small_frame(i));
    if (i % 5 == 0) this->send(0, large_frame(i / 5));
  }
  this->world.reset_link();
  ASSERT_TRUE(this->reported(1, What::up, 2));
  ASSERT_TRUE(this->both_up());
  EXPECT_TRUE(is_prefix(this->world.sink(1).sequences(Lane::small), numbers_from_one(50)));
  EXPECT_TRUE(is_prefix(this->world.sink(1).sequences(Lane::large), numbers_from_one(10)));
  const size_t before = this->world.sink(1).count(What::frame);
  this->send(0, small_frame(1000));
  ASSERT_TRUE(this->arrived(1, before + 1));
  EXPECT_EQ(this->world.sink(1).last(What::frame).frame.header.sequence, 1000u);
}

TYPED_TEST_P(TransportSuite, NothingArrivesBetweenALossAndTheNextLink) {
  this->connect();
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 1; i <= 20; ++i) this->send(0, small_frame(i));
    this->world.reset_link();
    ASSERT_TRUE(this->reported(0, What::up, static_cast<size_t>(round) + 2));
    ASSERT_TRUE(this->both_up());
  }
  bool up = false;
  for (const auto& report : this->world.sink(1).reports()) {
    if (report.what == What::up) up = true;
    if (report.what == What::lost) up = false;
    EXPECT_TRUE(up || report.what != What::frame);
  }
}

TYPED_TEST_P(TransportSuite, ALinkSurvivesManyResets) {
  this->connect();
  for (size_t round = 0; round < 10; ++round) {
    this->world.reset_link();
    ASSERT_TRUE(this->reported(0, What::up, round + 2)) << round;
    ASSERT_TRUE(this->reported(1, What::up, round + 2)) << round;
    ASSERT_TRUE(this->both_up());
  }
  this->send(1, small_frame(1));
  EXPECT_TRUE(this->arrived(0, 1));
}

TYPED_TEST_P(TransportSuite, QueuedBytesOfABrokenLinkAreForgotten) {
  this->connect();
  this->world.set_blocked(true);
  for (uint64_t i = 1; i <= 8; ++i) this->send(0, large_frame(i, 4 << 20));
  EXPECT_GT(this->queued(0), 0u);
  this->world.reset_link();
  this->world.set_blocked(false);
  ASSERT_TRUE(this->reported(0, What::up, 2));
  EXPECT_TRUE(this->world.advance_until([this] { return this->queued(0) == 0; }));
}

// Back-pressure and stalls.

TYPED_TEST_P(TransportSuite, ABlockedLinkStallsAndThenDeliversEverything) {
  this->connect();
  this->world.set_blocked(true);
  for (uint64_t i = 1; i <= 20; ++i) this->send(0, small_frame(i));
  this->world.advance(std::chrono::milliseconds(300));
  EXPECT_EQ(this->world.sink(1).count(What::frame), 0u);
  this->world.set_blocked(false);
  ASSERT_TRUE(this->arrived(1, 20));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::small), numbers_from_one(20));
  EXPECT_EQ(this->world.sink(0).count(What::lost), 0u);
  EXPECT_EQ(this->world.sink(1).count(What::lost), 0u);
}

TYPED_TEST_P(TransportSuite, WhatTheLinkCannotTakeIsQueuedAndItsEndReported) {
  this->connect();
  EXPECT_EQ(this->queued(0), 0u);
  this->world.set_blocked(true);
  for (uint64_t i = 1; i <= 16; ++i) this->send(0, large_frame(i, 4 << 20));
  EXPECT_GT(this->queued(0), uint64_t{16} << 20);
  EXPECT_EQ(this->world.sink(0).count(What::drained), 0u);
  this->world.set_blocked(false);
  ASSERT_TRUE(this->arrived(1, 16));
  ASSERT_TRUE(this->reported(0, What::drained));
  EXPECT_TRUE(this->world.advance_until([this] { return this->queued(0) == 0; }));
  EXPECT_EQ(this->world.sink(0).count(What::drained), 1u);
  EXPECT_EQ(this->world.sink(1).sequences(Lane::large), numbers_from_one(16));
}

TYPED_TEST_P(TransportSuite, SmallTrafficNeverReportsDrained) {
  this->connect();
  for (uint64_t i = 1; i <= 100; ++i) this->send(0, small_frame(i));
  ASSERT_TRUE(this->arrived(1, 100));
  EXPECT_EQ(this->world.sink(0).count(What::drained), 0u);
}

// Closing.

TYPED_TEST_P(TransportSuite, ClosingTellsThePeerTheReasonBehindAllFrames) {
  this->connect();
  for (uint64_t i = 1; i <= 30; ++i) this->send(0, small_frame(i));
  this->close(0, "enough");
  ASSERT_TRUE(this->reported(1, What::lost));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::small), numbers_from_one(30));
  const auto lost = this->world.sink(1).last(What::lost);
  EXPECT_TRUE(lost.closed);
  EXPECT_EQ(lost.why.text, "enough");
  EXPECT_EQ(lost.why.kind, ErrorKind::node_stopped);
  this->world.advance(std::chrono::milliseconds(200));
  EXPECT_EQ(this->world.sink(0).count(What::lost), 0u);
  EXPECT_EQ(this->world.sink(0).count(What::up), 1u);
  EXPECT_EQ(this->world.sink(1).count(What::up), 1u);
}

TYPED_TEST_P(TransportSuite, AClosedLinkCarriesNothing) {
  this->connect();
  this->close(0, "enough");
  this->send(0, small_frame(1));
  this->send(1, small_frame(1));
  ASSERT_TRUE(this->reported(1, What::lost));
  this->world.advance(std::chrono::milliseconds(100));
  EXPECT_EQ(this->world.sink(0).count(What::frame), 0u);
  EXPECT_EQ(this->world.sink(1).count(What::frame), 0u);
  EXPECT_EQ(this->queued(0), 0u);
}

TYPED_TEST_P(TransportSuite, AClosedPeerThatOpensAgainIsRefusedWithTheReason) {
  this->connect();
  this->close(0, "for good");
  ASSERT_TRUE(this->reported(1, What::lost));
  this->open(1);
  ASSERT_TRUE(this->reported(1, What::lost, 2));
  EXPECT_TRUE(this->world.sink(1).last(What::lost).closed);
  EXPECT_EQ(this->world.sink(1).last(What::lost).why.text, "for good");
  EXPECT_EQ(this->world.sink(0).count(What::up), 1u);
}

TYPED_TEST_P(TransportSuite, OpeningUndoesClosing) {
  this->connect();
  this->close(0, "for now");
  ASSERT_TRUE(this->reported(1, What::lost));
  this->open(0);
  this->open(1);
  // Both may connect at once; what is sent into the link that gives way goes with it, and a new
  // link is reported.
  const auto frames = [this] { return this->world.sink(1).count(What::frame); };
  const auto links = [this] {
    return this->world.sink(0).count(What::up) + this->world.sink(1).count(What::up);
  };
  for (uint64_t sequence = 5; frames() == 0; ++sequence) {
    ASSERT_LT(sequence, 10u);
    ASSERT_TRUE(this->both_up());
    const size_t before = links();
    this->send(0, small_frame(sequence));
    ASSERT_TRUE(this->world.advance_until([&] { return frames() > 0 || links() > before; }));
  }
}

TYPED_TEST_P(TransportSuite, AClosedLinkTakesANewIncarnation) {
  this->connect();
  this->close(0, "that life is fenced");
  ASSERT_TRUE(this->reported(1, What::lost));
  this->world.crash(1);
  this->world.restart(1);
  this->open(1);
  ASSERT_TRUE(this->reported(0, What::up, 2));
  EXPECT_EQ(this->world.sink(0).last(What::up).hello.incarnation, this->world.hello(1).incarnation);
}

TYPED_TEST_P(TransportSuite, ClosingFromWithinAReportIsSafe) {
  this->world.sink(1).set_reaction([this](const RecordingSink::Report& report) {
    if (report.what == What::frame && report.frame.header.sequence == 3)
      this->world.transport(1).close(report.peer, {.kind = ErrorKind::protocol, .text = "no"});
  });
  this->connect();
  for (uint64_t i = 1; i <= 10; ++i) this->send(0, small_frame(i));
  ASSERT_TRUE(this->reported(0, What::lost));
  EXPECT_TRUE(this->world.sink(0).last(What::lost).closed);
  EXPECT_EQ(this->world.sink(1).sequences(Lane::small), numbers_from_one(3));
}

// The end of a transport and of a process.

TYPED_TEST_P(TransportSuite, StoppingDeliversWhatWasSentAndReportsNothingMore) {
  this->connect();
  for (uint64_t i = 1; i <= 30; ++i) this->send(0, small_frame(i));
  this->send(0, large_frame(31, 1 << 20));
  this->world.sink(0).clear();
  this->world.run(0, [this] { this->world.transport(0).stop(); });
  ASSERT_TRUE(this->reported(1, What::lost));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::small), numbers_from_one(30));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::large), std::vector<uint64_t>{31});
  EXPECT_TRUE(this->world.sink(0).reports().empty());
}

TYPED_TEST_P(TransportSuite, AStoppedTransportIgnoresEverything) {
  this->connect();
  this->world.run(0, [this] {
    Transport& transport = this->world.transport(0);
    transport.stop();
    transport.stop();
    transport.send(this->worker(1), small_frame(1));
    transport.open(this->worker(1));
    transport.close(this->worker(1), {.text = "late"});
    EXPECT_EQ(transport.queued_bytes(this->worker(1)), 0u);
  });
  ASSERT_TRUE(this->reported(1, What::lost));
  this->world.advance(std::chrono::milliseconds(100));
  EXPECT_EQ(this->world.sink(1).count(What::frame), 0u);
  EXPECT_EQ(this->world.sink(1).count(What::up), 1u);
}

TYPED_TEST_P(TransportSuite, StoppingFromWithinAReportIsSafe) {
  this->world.sink(1).set_reaction([this](const RecordingSink::Report& report) {
    if (report.what == What::frame) this->world.transport(1).stop();
  });
  this->connect();
  for (uint64_t i = 1; i <= 10; ++i) this->send(0, small_frame(i));
  ASSERT_TRUE(this->reported(0, What::lost));
  EXPECT_EQ(this->world.sink(1).count(What::frame), 1u);
}

TYPED_TEST_P(TransportSuite, ACrashedPeerComesBackAsANewIncarnation) {
  this->connect();
  const Incarnation first = this->world.hello(1).incarnation;
  this->world.crash(1);
  this->send(0, small_frame(1));
  this->world.restart(1);
  EXPECT_NE(this->world.hello(1).incarnation, first);
  this->open(1);
  ASSERT_TRUE(this->reported(0, What::up, 2));
  EXPECT_EQ(this->world.sink(0).last(What::up).hello.incarnation, this->world.hello(1).incarnation);
  ASSERT_TRUE(this->both_up());
  this->send(0, small_frame(2));
  ASSERT_TRUE(this->arrived(1, 1));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::small), std::vector<uint64_t>{2});
}

REGISTER_TYPED_TEST_SUITE_P(
    TransportSuite, BothEndsHearOfALinkWithTheOthersHello, OpeningAgainHasNoEffect,
    ALinkIsMadeHoweverLateTheOtherEndOpens, RefusedAttemptsAreRepeatedUntilOneSucceeds,
    SmallFramesArriveInOrder, LargeFramesArriveInOrder, EachLaneKeepsItsOwnOrder,
    BothDirectionsCarryAtOnce, HeadersArriveAsTheyWereSent,
    SegmentsArriveByteForByteInAlignedMemoryOfThePool, ReceiversMayWriteToTheirSegments,
    AFrameOfManySegmentsArrives, FramesAtTheBorderOfTheLanesArrive, ABodyIsLetGoWhenItHasArrived,
    AnswersSentFromWithinAReportArrive, WhatIsSentBeforeTheLinkStandsIsDropped,
    SendingToAPeerThatWasNeverOpenedDoesNothing, ABrokenLinkIsReportedAndMadeAgain,
    OfABrokenLinkAPrefixOfEachLaneArrivesAndNothingLater, NothingArrivesBetweenALossAndTheNextLink,
    ALinkSurvivesManyResets, QueuedBytesOfABrokenLinkAreForgotten,
    ABlockedLinkStallsAndThenDeliversEverything, WhatTheLinkCannotTakeIsQueuedAndItsEndReported,
    SmallTrafficNeverReportsDrained, ClosingTellsThePeerTheReasonBehindAllFrames,
    AClosedLinkCarriesNothing, AClosedPeerThatOpensAgainIsRefusedWithTheReason,
    OpeningUndoesClosing, AClosedLinkTakesANewIncarnation, ClosingFromWithinAReportIsSafe,
    StoppingDeliversWhatWasSentAndReportsNothingMore, AStoppedTransportIgnoresEverything,
    StoppingFromWithinAReportIsSafe, ACrashedPeerComesBackAsANewIncarnation);

}  // namespace rehearsal::conformance
