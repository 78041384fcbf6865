#include "core/autograd/node_makers.h"

#include <ATen/SequenceNumber.h>
#include <gtest/gtest.h>

#include <thread>

namespace rehearsal {
namespace {

constexpr uint64_t kThread = 3;

CausalId maker(uint64_t ordinal, uint64_t incarnation = 1) {
  return {{incarnation}, {5, 5}, ordinal};
}

void note(NodeMakers& makers, uint64_t ordinal, uint64_t first, uint64_t end) {
  makers.note(maker(ordinal), {kThread, first}, {kThread, end});
}

TEST(NodeMakers, FindsTheExecutionOfEachNodeAndNothingBetween) {
  // Goal: the table answers for exactly the noted numbers. Method: two runs with a gap, asked at
  // every border.
  NodeMakers makers;
  EXPECT_TRUE(makers.table().empty());
  note(makers, 1, 10, 20);
  note(makers, 2, 25, 26);
  const MakerTable table = makers.table();
  EXPECT_EQ(table.find(kThread, 9), nullptr);
  EXPECT_EQ(table.find(kThread, 10)->maker, maker(1));
  EXPECT_EQ(table.find(kThread, 19)->maker, maker(1));
  EXPECT_EQ(table.find(kThread, 20), nullptr);
  EXPECT_EQ(table.find(kThread, 25)->maker, maker(2));
  EXPECT_EQ(table.find(kThread, 26), nullptr);
  EXPECT_EQ(table.find(kThread + 1, 10), nullptr);
}

TEST(NodeMakers, ATableDoesNotChangeWhenMoreIsNoted) {
  // Goal: a walk may read its table while the strand notes on. Method: note after taking it.
  NodeMakers makers;
  note(makers, 1, 0, 5);
  const MakerTable before = makers.table();
  note(makers, 1, 5, 8);
  note(makers, 2, 8, 9);
  EXPECT_EQ(before.find(kThread, 6), nullptr);
  EXPECT_EQ(makers.table().find(kThread, 6)->maker, maker(1));
  EXPECT_EQ(makers.table().find(kThread, 8)->maker, maker(2));
}

TEST(NodeMakers, RunsOfOneExecutionThatTouchBecomeOne) {
  // Goal: an execution that parks often without company costs one run. Method: note in pieces.
  NodeMakers makers;
  note(makers, 1, 0, 5);
  note(makers, 1, 5, 5);
  note(makers, 1, 5, 9);
  const MakerTable table = makers.table();
  EXPECT_EQ(table.find(kThread, 0), table.find(kThread, 8));
  EXPECT_EQ(table.find(kThread, 8)->end, 9u);
}

TEST(NodeMakers, ManyRunsAreFoundAndTheOldestForgotten) {
  // Goal: look-up across sealed chunks, and a bound on memory. Method: twice as many runs as are
  // kept, every one asked for.
  NodeMakers makers;
  const uint64_t runs = 2 * NodeMakers::kRunsMax;
  for (uint64_t i = 0; i < runs; ++i) note(makers, i, 3 * i, 3 * i + 2);
  const MakerTable table = makers.table();
  uint64_t known = 0;
  for (uint64_t i = 0; i < runs; ++i) {
    const NodeRun* const run = table.find(kThread, 3 * i + 1);
    if (run == nullptr) {
      ASSERT_EQ(known, 0u) << "only the oldest are forgotten";
      continue;
    }
    ++known;
    ASSERT_EQ(run->maker, maker(i));
    ASSERT_EQ(table.find(kThread, 3 * i + 2), nullptr);
  }
  EXPECT_LE(known, NodeMakers::kRunsMax + NodeMakers::kChunkRuns);
  EXPECT_GE(known, NodeMakers::kRunsMax / 2);
}

TEST(NodeMakers, HereFollowsTheThreadsOwnNumbering) {
  // Goal: a point names its thread and moves with the nodes made there only. Method: two threads.
  const SequencePoint before = SequencePoint::here();
  SequencePoint other_before;
  SequencePoint other_after;
  std::thread([&] {
    other_before = SequencePoint::here();
    at::sequence_number::get_and_increment();
    other_after = SequencePoint::here();
  }).join();
  const SequencePoint after = SequencePoint::here();
  EXPECT_EQ(before.thread, after.thread);
  EXPECT_EQ(before.next, after.next);
  EXPECT_NE(before.thread, other_before.thread);
  EXPECT_EQ(other_before.next + 1, other_after.next);
}

TEST(NodeMakers, SumsAreOrderedLatestFirstWithoutTheIncarnation) {
  // Goal: the order of 128-bit places and ordinals, the same after a restart. Method: pairs.
  EXPECT_TRUE(sums_before(maker(2), maker(1)));
  EXPECT_FALSE(sums_before(maker(1), maker(2)));
  EXPECT_FALSE(sums_before(maker(1, 7), maker(1, 8)));
  EXPECT_FALSE(sums_before(maker(1, 8), maker(1, 7)));
  CausalId other = maker(1);
  other.path.high += 1;
  EXPECT_TRUE(sums_before(other, maker(100)));
}

TEST(NodeMakersDeathTest, RefusesRunsThatOverlap) {
  // Goal: two executions never claim one node. Method: note a number twice.
  NodeMakers makers;
  note(makers, 1, 0, 5);
  EXPECT_DEATH(note(makers, 2, 4, 6), "newest.end <= from.next");
}

}  // namespace
}  // namespace rehearsal
