#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/conformance/transport_suite.h"

// The requirements on every Transport for frames and their bodies, beyond transport_suite.h; its
// World is the same.
namespace rehearsal::conformance {

template <class World>
class TransportFrameSuite : public TransportSuite<World> {
 protected:
  // Sends more than the network takes while nothing passes, and by far more than may be queued
  // before an end of the stall is reported.
  void stall(int end, uint64_t frames) {
    for (uint64_t i = 1; i <= frames; ++i) this->send(end, large_frame(i, 4 << 20));
    EXPECT_GT(this->queued(end), uint64_t{24} << 20);
  }
};

TYPED_TEST_SUITE_P(TransportFrameSuite);

TYPED_TEST_P(TransportFrameSuite, AnEmptyEnvelopeArrives) {
  this->connect();
  this->send(0, small_frame(1, ""));
  this->send(0, small_frame(2, "behind it"));
  ASSERT_TRUE(this->arrived(1, 2));
  const std::vector<Frame> frames = this->world.sink(1).frames();
  EXPECT_EQ(frames[0].bytes(), 0u);
  EXPECT_EQ(frames[1].body->envelope, "behind it");
}

TYPED_TEST_P(TransportFrameSuite, AnEnvelopeHoldsAnyBytes) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  this->connect();
  this->send(0, small_frame(1, all));
  this->send(0, small_frame(2, std::string(kSmallFrameBytes, '\0') + all));
  ASSERT_TRUE(this->arrived(1, 2));
  // Each lane has an order of its own.
  std::map<uint64_t, std::string> envelopes;
  for (const Frame& frame : this->world.sink(1).frames())
    envelopes[frame.header.sequence] = frame.body->envelope;
  EXPECT_EQ(envelopes[1], all);
  EXPECT_EQ(envelopes[2], std::string(kSmallFrameBytes, '\0') + all);
}

TYPED_TEST_P(TransportFrameSuite, TheLargestNumbersArrive) {
  this->connect();
  Frame frame = small_frame(UINT64_MAX);
  frame.header.acknowledged = UINT64_MAX;
  this->send(0, frame);
  ASSERT_TRUE(this->arrived(1, 1));
  const FrameHeader header = this->world.sink(1).frames()[0].header;
  EXPECT_EQ(header.sequence, UINT64_MAX);
  EXPECT_EQ(header.acknowledged, UINT64_MAX);
  EXPECT_EQ(header.kind, FrameKind::message);
}

TYPED_TEST_P(TransportFrameSuite, AFrameOfManyMegabytesArrives) {
  this->connect();
  const Frame sent = frame_with(1, {(16 << 20) + 1, 3});
  this->send(0, sent);
  ASSERT_TRUE(this->arrived(1, 1));
  const Frame frame = this->world.sink(1).frames()[0];
  ASSERT_EQ(frame.body->segments.size(), 2u);
  EXPECT_TRUE(same_bytes(frame.body->segments[0], sent.body->segments[0]));
  EXPECT_TRUE(same_bytes(frame.body->segments[1], sent.body->segments[1]));
}

// Goal: a resent frame shares its body with the one before. Method: one body, sent three times.
TYPED_TEST_P(TransportFrameSuite, OneBodyMayBeSentAgain) {
  this->connect();
  const Frame sent = large_frame(1);
  for (int i = 0; i < 3; ++i) this->send(0, sent);
  ASSERT_TRUE(this->arrived(1, 3));
  const std::vector<Frame> frames = this->world.sink(1).frames();
  frames[0].body->segments[0].data[0] = std::byte{0xee};
  for (const size_t later : {1, 2})
    EXPECT_TRUE(same_bytes(frames[later].body->segments[0], sent.body->segments[0])) << later;
}

TYPED_TEST_P(TransportFrameSuite, WhatArrivedMayBeSentOn) {
  this->world.sink(1).set_reaction([this](const RecordingSink::Report& report) {
    if (report.what == What::frame) this->world.transport(1).send(report.peer, report.frame);
  });
  this->connect();
  const Frame sent = frame_with(1, {100, 70'000});
  this->send(0, sent);
  ASSERT_TRUE(this->arrived(0, 1));
  const Frame back = this->world.sink(0).frames()[0];
  ASSERT_EQ(back.body->segments.size(), 2u);
  EXPECT_TRUE(same_bytes(back.body->segments[1], sent.body->segments[1]));
}

TYPED_TEST_P(TransportFrameSuite, ABodyIsLetGoWhenItsLinkIsLost) {
  this->connect();
  this->world.set_blocked(true);
  const Frame kept = large_frame(1, 4 << 20);
  for (int i = 0; i < 8; ++i) this->send(0, kept);
  this->world.reset_link();
  this->world.set_blocked(false);
  ASSERT_TRUE(this->reported(0, What::up, 2));
  this->world.sink(1).clear();
  EXPECT_TRUE(this->world.advance_until([&kept] { return kept.body.use_count() == 1; }));
}

TYPED_TEST_P(TransportFrameSuite, ABodyIsLetGoWhenItsLinkIsClosed) {
  this->connect();
  const Frame kept = large_frame(1);
  for (int i = 0; i < 8; ++i) this->send(0, kept);
  this->close(0, "enough");
  ASSERT_TRUE(this->reported(1, What::lost));
  this->world.sink(1).clear();
  EXPECT_TRUE(this->world.advance_until([&kept] { return kept.body.use_count() == 1; }));
  EXPECT_EQ(this->queued(0), 0u);
}

TYPED_TEST_P(TransportFrameSuite, ABodyThatIsDroppedIsLetGoAtOnce) {
  const Frame kept = large_frame(1);
  this->send(0, kept);
  EXPECT_EQ(kept.body.use_count(), 1);
  this->open(0);
  this->send(0, kept);
  EXPECT_EQ(kept.body.use_count(), 1);
  EXPECT_EQ(this->queued(0), 0u);
}

TYPED_TEST_P(TransportFrameSuite, TheEndOfEachStallIsReported) {
  this->connect();
  for (size_t round = 1; round <= 2; ++round) {
    this->world.set_blocked(true);
    this->stall(0, 12);
    this->world.set_blocked(false);
    ASSERT_TRUE(this->arrived(1, 12 * round));
    ASSERT_TRUE(this->reported(0, What::drained, round)) << round;
    EXPECT_EQ(this->world.sink(0).count(What::drained), round);
  }
  EXPECT_EQ(this->world.sink(1).count(What::drained), 0u);
}

TYPED_TEST_P(TransportFrameSuite, BothDirectionsMayStallAtOnce) {
  this->connect();
  this->world.set_blocked(true);
  for (const int end : {0, 1}) this->stall(end, 12);
  EXPECT_GT(this->queued(0), uint64_t{8} << 20);
  EXPECT_GT(this->queued(1), uint64_t{8} << 20);
  this->world.set_blocked(false);
  for (const int end : {0, 1}) {
    ASSERT_TRUE(this->arrived(end, 12)) << end;
    ASSERT_TRUE(this->reported(end, What::drained)) << end;
    EXPECT_EQ(this->world.sink(end).sequences(Lane::large), numbers_from_one(12)) << end;
    EXPECT_TRUE(this->world.advance_until([this, end] { return this->queued(end) == 0; })) << end;
  }
}

// Goal: who waits for room sends from within the report that there is some.
TYPED_TEST_P(TransportFrameSuite, WhatIsSentFromWithinTheEndOfAStallArrivesBehindIt) {
  this->world.sink(0).set_reaction([this](const RecordingSink::Report& report) {
    if (report.what == What::drained)
      this->world.transport(0).send(report.peer, large_frame(13, 1000 * 1000));
  });
  this->connect();
  this->world.set_blocked(true);
  this->stall(0, 12);
  this->world.set_blocked(false);
  ASSERT_TRUE(this->arrived(1, 13));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::large), numbers_from_one(13));
}

REGISTER_TYPED_TEST_SUITE_P(TransportFrameSuite, AnEmptyEnvelopeArrives, AnEnvelopeHoldsAnyBytes,
                            TheLargestNumbersArrive, AFrameOfManyMegabytesArrives,
                            OneBodyMayBeSentAgain, WhatArrivedMayBeSentOn,
                            ABodyIsLetGoWhenItsLinkIsLost, ABodyIsLetGoWhenItsLinkIsClosed,
                            ABodyThatIsDroppedIsLetGoAtOnce, TheEndOfEachStallIsReported,
                            BothDirectionsMayStallAtOnce,
                            WhatIsSentFromWithinTheEndOfAStallArrivesBehindIt);

}  // namespace rehearsal::conformance
