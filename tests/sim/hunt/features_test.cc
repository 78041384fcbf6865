#include "sim/hunt/features.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace rehearsal::sim {
namespace {

Event frame(uint32_t to, uint32_t from, uint32_t type) {
  return {.kind = EventKind::frame,
          .worker = WorkerId{to},
          .peer = WorkerId{from},
          .message_type = type};
}

Event step(EventKind kind, uint32_t worker, uint64_t object) {
  return {.kind = kind, .worker = WorkerId{worker}, .number = object};
}

std::vector<uint32_t> features_of(std::initializer_list<Event> events) {
  Features features;
  for (const Event& event : events) features.on_event(event);
  return features.seen();
}

TEST(Features, WhoDeliversAfterWhomIsOne) {
  EXPECT_EQ(features_of({frame(0, 1, 3), frame(0, 2, 3)}).size(), 2u);
  EXPECT_NE(features_of({frame(0, 1, 3), frame(0, 2, 3)}),
            features_of({frame(0, 2, 3), frame(0, 1, 3)}));
  // Frames to different workers are in no order.
  EXPECT_EQ(features_of({frame(0, 1, 3), frame(1, 2, 3)}),
            features_of({frame(1, 2, 3), frame(0, 1, 3)}));
}

TEST(Features, WhatHappensToAnObjectAfterWhatIsOneWhicheverObjectItIs) {
  const auto deleted = EventKind::fork_deleted;
  const auto registered = EventKind::fork_registered;
  EXPECT_TRUE(features_of({step(registered, 0, 7)}).empty());
  EXPECT_EQ(features_of({step(registered, 0, 7), step(deleted, 0, 7)}).size(), 1u);
  EXPECT_EQ(features_of({step(registered, 0, 7), step(deleted, 0, 7)}),
            features_of({step(registered, 3, 9), step(deleted, 3, 9)}));
  EXPECT_NE(features_of({step(registered, 0, 7), step(deleted, 0, 7)}),
            features_of({step(registered, 0, 7), step(deleted, 1, 7)}));
  EXPECT_TRUE(features_of({step(registered, 0, 7), step(deleted, 0, 8)}).empty());
}

TEST(Features, EachMarkIsOneHoweverOften) {
  const Event mark{.kind = EventKind::mark, .worker = WorkerId{0}, .text = "rare"};
  const Event other{.kind = EventKind::mark, .worker = WorkerId{1}, .text = "rarer"};
  EXPECT_EQ(features_of({mark, mark}).size(), 1u);
  EXPECT_EQ(features_of({mark, other, mark}).size(), 2u);
}

}  // namespace
}  // namespace rehearsal::sim
