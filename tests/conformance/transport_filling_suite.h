#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tests/conformance/transport_suite.h"

// The requirements on every Transport for bodies that are filled while they leave, beyond
// transport_suite.h; its World is the same.
namespace rehearsal::conformance {

// A frame whose segments something fills step by step; before, they hold other bytes.
class FillingFrame {
 public:
  FillingFrame(uint64_t sequence, const std::vector<uint64_t>& segment_bytes)
      : whole_(frame_with(sequence, segment_bytes)), filled_(std::make_shared<uint64_t>(0)) {
    frame_.header = whole_.header;
    auto body = std::make_shared<FrameBody>();
    body->envelope = whole_.body->envelope;
    for (const Segment& segment : whole_.body->segments) {
      auto owner = std::make_shared<std::vector<std::byte>>(segment.bytes, std::byte{0xee});
      body->segments.push_back({.owner = owner, .data = owner->data(), .bytes = segment.bytes});
    }
    body->filled = filled_;
    frame_.body = std::move(body);
  }

  [[nodiscard]] const Frame& frame() const { return frame_; }
  // As it is once it is filled.
  [[nodiscard]] const Frame& whole() const { return whole_; }
  [[nodiscard]] uint64_t filled() const { return *filled_; }
  // On the strand.
  void fill_to(uint64_t filled) {
    uint64_t before = 0;
    for (size_t i = 0; i < frame_.body->segments.size(); ++i) {
      const Segment& from = whole_.body->segments[i];
      const uint64_t bytes = filled <= before ? 0 : std::min(from.bytes, filled - before);
      if (bytes > 0) std::memcpy(frame_.body->segments[i].data, from.data, bytes);
      before += from.bytes;
    }
    *filled_ = filled;
  }

 private:
  Frame whole_;
  std::shared_ptr<uint64_t> filled_;
  Frame frame_;
};

template <class World>
class TransportFillingSuite : public TransportSuite<World> {
 protected:
  void fill_to(FillingFrame& frame, uint64_t filled) {
    this->world.run(0, [this, &frame, filled] {
      frame.fill_to(filled);
      this->world.transport(0).send_on(this->worker(1));
    });
  }
  void break_link(int end) {
    this->world.run(end, [this, end] {
      this->world.transport(end).break_link(this->worker(1 - end),
                                            {.kind = ErrorKind::peer_lost, .text = "enough"});
    });
  }
  void expect_whole(const Frame& arrived, const FillingFrame& sent) {
    ASSERT_EQ(arrived.header.sequence, sent.frame().header.sequence);
    const std::vector<Segment>& segments = sent.whole().body->segments;
    ASSERT_EQ(arrived.body->segments.size(), segments.size());
    for (size_t i = 0; i < segments.size(); ++i)
      EXPECT_TRUE(same_bytes(arrived.body->segments[i], segments[i])) << i;
  }
};

TYPED_TEST_SUITE_P(TransportFillingSuite);

TYPED_TEST_P(TransportFillingSuite, AFrameArrivesOnceItIsFilled) {
  this->connect();
  FillingFrame sent(1, {300'000, 5, 0, 400'000});
  this->send(0, sent.frame());
  for (const uint64_t filled : {1, 299'999, 300'003, 300'005, 500'000, 700'004}) {
    this->fill_to(sent, filled);
    this->world.advance(std::chrono::milliseconds(5));
    EXPECT_EQ(this->world.sink(1).count(What::frame), 0u) << filled;
    EXPECT_GT(this->queued(0), 0u);
  }
  this->fill_to(sent, 700'005);
  ASSERT_TRUE(this->arrived(1, 1));
  this->expect_whole(this->world.sink(1).frames()[0], sent);
  EXPECT_TRUE(this->world.advance_until([this] { return this->queued(0) == 0; }));
}

// Goal: only its own lane waits for it, and in order.
TYPED_TEST_P(TransportFillingSuite, OnlyItsLaneWaitsForIt) {
  this->connect();
  FillingFrame sent(1, {300'000});
  this->send(0, large_frame(7));
  this->send(0, sent.frame());
  this->send(0, large_frame(2));
  FillingFrame other(3, {200'000});
  other.fill_to(200'000);
  this->send(0, other.frame());
  this->send(0, small_frame(4));
  ASSERT_TRUE(this->arrived(1, 2));
  this->world.advance(std::chrono::milliseconds(20));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::small), std::vector<uint64_t>{4});
  EXPECT_EQ(this->world.sink(1).sequences(Lane::large), std::vector<uint64_t>{7});
  this->fill_to(sent, 300'000);
  ASSERT_TRUE(this->arrived(1, 5));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::large), (std::vector<uint64_t>{7, 1, 2, 3}));
}

TYPED_TEST_P(TransportFillingSuite, ASmallOneWaitsToo) {
  this->connect();
  FillingFrame sent(1, {40, 60});
  this->send(0, sent.frame());
  this->send(0, small_frame(2));
  this->fill_to(sent, 50);
  this->world.advance(std::chrono::milliseconds(20));
  EXPECT_EQ(this->world.sink(1).count(What::frame), 0u);
  this->fill_to(sent, 100);
  ASSERT_TRUE(this->arrived(1, 2));
  this->expect_whole(this->world.sink(1).frames()[0], sent);
}

TYPED_TEST_P(TransportFillingSuite, OneThatIsFilledLeavesUnasked) {
  this->connect();
  FillingFrame sent(1, {100, 300'000});
  sent.fill_to(UINT64_MAX);
  this->send(0, sent.frame());
  ASSERT_TRUE(this->arrived(1, 1));
  this->expect_whole(this->world.sink(1).frames()[0], sent);
}

TYPED_TEST_P(TransportFillingSuite, ABrokenLinkIsLostAndMadeAgain) {
  this->connect();
  FillingFrame sent(1, {300'000});
  this->send(0, sent.frame());
  this->fill_to(sent, 200'000);
  this->break_link(0);
  for (const int end : {0, 1}) {
    ASSERT_TRUE(this->reported(end, What::lost)) << end;
    EXPECT_FALSE(this->world.sink(end).last(What::lost).closed);
    ASSERT_TRUE(this->reported(end, What::up, 2)) << end;
  }
  this->fill_to(sent, 300'000);
  this->send(0, large_frame(2));
  ASSERT_TRUE(this->arrived(1, 1));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::large), std::vector<uint64_t>{2});
}

// Goal: a frame that is sent again leaves from its start, with what has been filled meanwhile.
TYPED_TEST_P(TransportFillingSuite, OneThatIsSentAgainGoesOnBeingFilled) {
  this->connect();
  FillingFrame sent(1, {300'000});
  this->send(0, sent.frame());
  this->fill_to(sent, 100'000);
  this->world.advance(std::chrono::milliseconds(5));
  this->world.reset_link();
  for (const int end : {0, 1}) ASSERT_TRUE(this->reported(end, What::up, 2)) << end;
  this->send(0, sent.frame());
  this->fill_to(sent, 200'000);
  this->world.advance(std::chrono::milliseconds(5));
  EXPECT_EQ(this->world.sink(1).count(What::frame), 0u);
  this->fill_to(sent, 300'000);
  ASSERT_TRUE(this->arrived(1, 1));
  this->expect_whole(this->world.sink(1).frames()[0], sent);
}

TYPED_TEST_P(TransportFillingSuite, OneThatIsNeverFilledHoldsUpNoEnd) {
  this->connect();
  FillingFrame sent(1, {300'000});
  this->send(0, sent.frame());
  this->fill_to(sent, 100'000);
  this->close(0, "enough");
  ASSERT_TRUE(this->reported(1, What::lost));
  EXPECT_EQ(this->world.sink(1).count(What::frame), 0u);
  this->fill_to(sent, 300'000);
  this->break_link(0);
}

TYPED_TEST_P(TransportFillingSuite, WithoutALinkThereIsNothingToBreak) {
  this->break_link(0);
  this->connect();
  EXPECT_EQ(this->world.sink(0).count(What::lost), 0u);
}

REGISTER_TYPED_TEST_SUITE_P(TransportFillingSuite, AFrameArrivesOnceItIsFilled,
                            OnlyItsLaneWaitsForIt, ASmallOneWaitsToo, OneThatIsFilledLeavesUnasked,
                            ABrokenLinkIsLostAndMadeAgain, OneThatIsSentAgainGoesOnBeingFilled,
                            OneThatIsNeverFilledHoldsUpNoEnd, WithoutALinkThereIsNothingToBreak);

}  // namespace rehearsal::conformance
