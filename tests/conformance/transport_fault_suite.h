#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/conformance/transport_suite.h"

// The requirements on every Transport in a network that goes wrong, beyond transport_suite.h. Its
// World has, besides,
//   void corrupt_next();                    // a bit flips in what is sent next
namespace rehearsal::conformance {

template <class World>
class TransportFaultSuite : public TransportSuite<World> {};

TYPED_TEST_SUITE_P(TransportFaultSuite);

TYPED_TEST_P(TransportFaultSuite, AFlippedBitBreaksTheLinkAndIsNotDelivered) {
  this->connect();
  this->send(0, small_frame(1));
  ASSERT_TRUE(this->arrived(1, 1));
  this->world.corrupt_next();
  this->send(0, small_frame(2));
  ASSERT_TRUE(this->reported(1, What::lost));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::small), numbers_from_one(1));
  EXPECT_FALSE(this->world.sink(1).last(What::lost).closed);
  ASSERT_TRUE(this->reported(0, What::lost));
  ASSERT_TRUE(this->both_up());
  this->send(0, small_frame(2));
  ASSERT_TRUE(this->arrived(1, 2));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::small), numbers_from_one(2));
}

TYPED_TEST_P(TransportFaultSuite, AnAttemptThatNobodyAnswersIsMadeGoodLater) {
  this->world.set_blocked(true);
  this->open(0);
  this->open(1);
  this->world.advance(std::chrono::milliseconds(300));
  EXPECT_FALSE(this->world.sink(0).up());
  EXPECT_FALSE(this->world.sink(1).up());
  this->world.set_blocked(false);
  EXPECT_TRUE(this->both_up());
  EXPECT_EQ(this->world.sink(0).count(What::frame), 0u);
}

TYPED_TEST_P(TransportFaultSuite, SmallFramesFillTheQueueToo) {
  this->connect();
  this->world.set_blocked(true);
  const std::string text(60'000, 'x');
  for (uint64_t i = 1; i <= 600; ++i) this->send(0, small_frame(i, text));
  EXPECT_GT(this->queued(0), uint64_t{20} << 20);
  EXPECT_EQ(this->queued(1), 0u);
  this->world.set_blocked(false);
  ASSERT_TRUE(this->reported(0, What::drained));
  ASSERT_TRUE(this->arrived(1, 600));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::small), numbers_from_one(600));
}

// Goal: who does not hear of its peer's end believes in the link, and loses what it sends, until
// the peer's next life takes its place.
TYPED_TEST_P(TransportFaultSuite, AHalfOpenLinkLastsUntilTheNextLifeReplacesIt) {
  this->connect();
  this->world.set_blocked(true);
  this->world.crash(1);
  this->send(0, small_frame(1));
  this->world.advance(std::chrono::milliseconds(300));
  EXPECT_EQ(this->world.sink(0).count(What::lost), 0u);
  this->world.restart(1);
  this->open(1);
  this->world.set_blocked(false);
  ASSERT_TRUE(this->reported(0, What::up, 2));
  ASSERT_TRUE(this->both_up());
  EXPECT_EQ(this->world.sink(0).last(What::up).hello.incarnation, this->world.hello(1).incarnation);
  EXPECT_EQ(this->world.sink(1).count(What::frame), 0u);
  this->send(0, small_frame(2));
  ASSERT_TRUE(this->arrived(1, 1));
  EXPECT_EQ(this->world.sink(1).sequences(Lane::small), std::vector<uint64_t>{2});
}

REGISTER_TYPED_TEST_SUITE_P(TransportFaultSuite, AFlippedBitBreaksTheLinkAndIsNotDelivered,
                            AnAttemptThatNobodyAnswersIsMadeGoodLater, SmallFramesFillTheQueueToo,
                            AHalfOpenLinkLastsUntilTheNextLifeReplacesIt);

}  // namespace rehearsal::conformance
