#include "sim/world/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/base/hash.h"

namespace rehearsal::sim {
namespace {

using std::chrono::microseconds;

class Recorded final : public net_fake::Occurrence {
 public:
  WorkerId worker(uint64_t) const override { return WorkerId{0}; }
  bool due(uint64_t ticket) const override { return !called_off.contains(ticket); }
  void happen(uint64_t ticket) override { happened.push_back(ticket); }

  std::set<uint64_t> called_off;
  std::vector<uint64_t> happened;
};

class EventQueueTest : public testing::Test {
 protected:
  void run_all() {
    while (const auto next = queue.peek()) {
      queue.take(*next);
      EXPECT_EQ(queue.now(), next->when);
      next->what->happen(next->ticket);
    }
  }
  EventQueue queue;
  Recorded events;
};

TEST_F(EventQueueTest, EventsComeByInstantAndThoseOfOneInstantInTheirOrder) {
  std::vector<std::pair<int64_t, uint64_t>> expected;
  for (uint64_t i = 0; i < 5'000; ++i) {
    const auto when = static_cast<int64_t>(mix(i) % 300);
    queue.at(Instant{microseconds(when)}, events, i);
    expected.emplace_back(when, i);
  }
  std::stable_sort(expected.begin(), expected.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  run_all();
  ASSERT_EQ(events.happened.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(events.happened[i], expected[i].second) << i;
}

TEST_F(EventQueueTest, ThePastIsNow) {
  queue.at(Instant{microseconds(10)}, events, 1);
  run_all();
  queue.at(Instant{microseconds(3)}, events, 2);
  const auto next = queue.peek();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->when, Instant{microseconds(10)});
}

TEST_F(EventQueueTest, WhatIsCalledOffNeverHappensAndMovesNoTime) {
  for (uint64_t i = 1; i <= 10; ++i) queue.at(Instant{microseconds(i)}, events, i);
  for (uint64_t i = 1; i <= 10; i += 2) events.called_off.insert(i);
  events.called_off.insert(10);
  run_all();
  EXPECT_EQ(events.happened, (std::vector<uint64_t>{2, 4, 6, 8}));
  EXPECT_EQ(queue.now(), Instant{microseconds(8)});
}

// Goal: deadlines that are nearly always called off do not pile up.
TEST_F(EventQueueTest, CalledOffEventsAreSweptOut) {
  for (uint64_t i = 0; i < 100'000; ++i) {
    queue.at(Instant{std::chrono::seconds(60)} + microseconds(i), events, i);
    if (i % 100 != 0) events.called_off.insert(i);
  }
  EXPECT_LT(queue.size(), 5'000u);
  run_all();
  EXPECT_EQ(events.happened.size(), 1'000u);
  EXPECT_TRUE(std::is_sorted(events.happened.begin(), events.happened.end()));
}

TEST_F(EventQueueTest, TimeCanPassWithoutEvents) {
  queue.move_to(Instant{microseconds(5)});
  EXPECT_EQ(queue.now(), Instant{microseconds(5)});
  queue.move_to(Instant{microseconds(2)});
  EXPECT_EQ(queue.now(), Instant{microseconds(5)});
  EXPECT_FALSE(queue.peek());
}

}  // namespace
}  // namespace rehearsal::sim
