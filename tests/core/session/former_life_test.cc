#include <gtest/gtest.h>

#include <vector>

#include "tests/core/session/session_fixture.h"

namespace rehearsal {
namespace {

// A frame names both lives: its sender's and its receiver's.
class FormerLifeTest : public SessionFixture {
 protected:
  // b has restarted and met a, and then a frame comes that a has sent to b's former life.
  void deliver_a_frame_for_the_former_life() {
    a->send(1, 1);
    const auto late = network.take(find(0));
    b = begin(1, 201);
    cut();
    connect();
    deliver_all();
    network.put(late);
    deliver_all();
  }
};

TEST_F(FormerLifeTest, WhatWasSentToItIsNothingToTheNewOne) {
  // Goal: the receiver's life counts although the sender's is the same. Method: the new life knows
  // a, and the number of the frame is fresh to it.
  deliver_a_frame_for_the_former_life();
  EXPECT_TRUE(b->received.empty());
  ASSERT_EQ(b->trace.count(EventKind::frame_dropped), 1u);
  EXPECT_EQ(b->trace.all(EventKind::frame_dropped).back().text, "it is of another incarnation");
  a->send(1, 2);
  deliver_all();
  EXPECT_EQ(b->received, (std::vector<uint64_t>{2}));
  EXPECT_TRUE(b->fenced.empty());
}

TEST_F(FormerLifeTest, WithTheSwitchItIsTaken) {
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  mutants.turn_on(Mutant::destination_unchecked);
  deliver_a_frame_for_the_former_life();
  EXPECT_EQ(b->received, (std::vector<uint64_t>{1}));
}

}  // namespace
}  // namespace rehearsal
