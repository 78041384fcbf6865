#include "net_fake/partitions.h"

#include <gtest/gtest.h>

#include <set>

#include "net_fake/trouble.h"
#include "tests/conformance/transport_suite.h"
#include "tests/net_fake/fake_world.h"

namespace rehearsal::net_fake {
namespace {

using conformance::large_frame;
using conformance::small_frame;
using conformance::What;
using std::chrono::milliseconds;
using std::chrono::seconds;

using Ways = std::set<std::pair<uint32_t, uint32_t>>;

class PartitionsTest : public testing::Test {
 protected:
  static constexpr uint32_t kWorkers = 5;

  PartitionsTest() : cluster({"a", "b", "c", "d", "e"}) {
    cluster.open_all();
    network().everywhere().delay(milliseconds(1));
    cluster.decisions.answers[DecisionKind::heal_latency] = [](const Key&, uint64_t) { return 0; };
    const auto longest = [](const Key&, uint64_t n) { return n - 1; };
    cluster.decisions.answers[DecisionKind::partition_length] = longest;
    cluster.decisions.answers[DecisionKind::clog_length] = longest;
  }
  Network& network() { return cluster.network; }

  void send(uint32_t from, uint32_t to) {
    cluster.transport(from).send(WorkerId{to}, small_frame(++sent));
  }
  // Over which ways a message does not come through within a second. Waits for it afterwards.
  Ways blocked() {
    Ways ways;
    for (uint32_t from = 0; from < kWorkers; ++from)
      for (uint32_t to = 0; to < kWorkers; ++to) {
        if (from == to) continue;
        ways.insert({from, to});
        send(from, to);
      }
    const size_t before = ways.size();
    cluster.schedule.advance(milliseconds(100));
    for (uint32_t to = 0; to < kWorkers; ++to) {
      for (const auto& report : cluster.sink(to).reports())
        if (report.what == What::frame) ways.erase({report.peer.value, to});
      cluster.sink(to).clear();
    }
    EXPECT_LE(ways.size(), before);
    return ways;
  }
  static Ways both(std::initializer_list<std::pair<uint32_t, uint32_t>> pairs) {
    Ways ways;
    for (const auto& [one, other] : pairs) {
      ways.insert({one, other});
      ways.insert({other, one});
    }
    return ways;
  }

  FakeCluster cluster;
  uint64_t sent = 0;
};

TEST_F(PartitionsTest, ASplitLeavesWhoIsOnNeitherSideAsABridge) {
  (void)network().split({"a", "b"}, {"c", "d"});
  EXPECT_EQ(blocked(), both({{0, 2}, {0, 3}, {1, 2}, {1, 3}}));
}

TEST_F(PartitionsTest, InARingEachReachesItsNeighbours) {
  (void)network().ring({"a", "c", "e", "b", "d"});
  EXPECT_EQ(blocked(), both({{0, 4}, {0, 1}, {2, 1}, {2, 3}, {4, 3}}));
}

TEST_F(PartitionsTest, AnIsolatedWorkerReachesNobody) {
  (void)network().isolate("c");
  EXPECT_EQ(blocked(), both({{2, 0}, {2, 1}, {2, 3}, {2, 4}}));
}

// Goal: a jam is no silence of the machine: the connection lasts, and all arrives at last.
TEST_F(PartitionsTest, AJammedLinkStallsButNeverBreaks) {
  const PartitionId jam = network().jam("a", "b");
  send(0, 1);
  cluster.schedule.advance(seconds(60));
  EXPECT_EQ(cluster.sink(1).count(What::frame), 0u);
  EXPECT_EQ(cluster.sink(0).count(What::lost), 0u);
  network().heal(jam);
  EXPECT_TRUE(cluster.advance_until([&] { return cluster.sink(1).count(What::frame) == 1; }));
  EXPECT_EQ(network().stats().losses, 0u);
}

TEST_F(PartitionsTest, AJamMakesTheSendersQueueGrowAndNothingIsDropped) {
  const PartitionId jam = network().jam("a", "b");
  for (uint64_t i = 1; i <= 10; ++i)
    cluster.transport(0).send(WorkerId{1}, large_frame(i, 1 << 20));
  EXPECT_GT(cluster.transport(0).queued_bytes(WorkerId{1}), uint64_t{9} << 20);
  network().heal(jam);
  EXPECT_TRUE(cluster.advance_until([&] { return cluster.sink(0).count(What::drained) == 1; }));
  EXPECT_EQ(cluster.sink(1).count(What::frame), 10u);
}

TEST_F(PartitionsTest, ASlowLinkIsLateByItsExtraDelay) {
  const PartitionId slow = network().slow("a", "b", milliseconds(50));
  const Instant start = cluster.schedule.now();
  const auto arrived = [this](size_t frames) {
    return cluster.advance_until([&] { return cluster.sink(1).count(What::frame) == frames; });
  };
  send(0, 1);
  ASSERT_TRUE(arrived(1));
  EXPECT_EQ(cluster.schedule.now() - start, milliseconds(51));
  network().heal(slow);
  send(0, 1);
  ASSERT_TRUE(arrived(2));
  EXPECT_EQ(cluster.schedule.now() - start, milliseconds(52));
}

TEST_F(PartitionsTest, ASwizzleClogsOneAfterAnotherAndFreesAllInItsTime) {
  cluster.decisions.answers[DecisionKind::clog_length] = [](const Key& key, uint64_t) {
    return key.subject.worker == WorkerId{1} ? 0 : 512;  // b is freed first.
  };
  network().swizzle({"a", "b"}, seconds(4));
  EXPECT_EQ(blocked(), both({{0, 1}, {0, 2}, {0, 3}, {0, 4}}));
  cluster.schedule.advance(seconds(1));
  EXPECT_EQ(blocked().size(), 14u);
  cluster.schedule.advance(milliseconds(900));  // 2.1 s: b is free.
  EXPECT_EQ(blocked(), both({{0, 1}, {0, 2}, {0, 3}, {0, 4}}));
  cluster.schedule.advance(milliseconds(1'500));
  for (uint32_t i = 0; i < kWorkers; ++i) cluster.sink(i).clear();
  EXPECT_EQ(blocked(), Ways{});
}

// Goal: chance makes every shape, and each heals by itself. Method: the shape is given; the ways
// that are cut are counted, then time passes.
TEST_F(PartitionsTest, ADrawnPartitionHasTheShapeThatWasDrawnAndHeals) {
  const std::vector<std::pair<uint64_t, size_t>> shapes = {
      {0, 1}, {1, 2}, {2, 8}, {3, 8}, {6, 10}};  // and the ways that each cuts
  for (const auto& [shape, ways] : shapes) {
    cluster.decisions.answers[DecisionKind::partition] = [](const Key&, uint64_t n) {
      return n - 1;
    };
    cluster.decisions.answers[DecisionKind::partition_shape] = [shape](const Key&, uint64_t) {
      return shape;
    };
    network().set_weather({.partition_millionths = 1, .partition_max = seconds(2)});
    send(0, 1);
    network().set_weather({});
    EXPECT_EQ(blocked().size(), ways) << shape;
    cluster.schedule.advance(seconds(3));
    for (uint32_t i = 0; i < kWorkers; ++i) cluster.sink(i).clear();
    EXPECT_EQ(blocked(), Ways{}) << shape;
    cluster.schedule.advance(seconds(1));
  }
  EXPECT_EQ(network().stats().partitions, shapes.size());
}

// Goal: a split by size has every size. Method: the size is given.
TEST_F(PartitionsTest, ASplitBySizeHasTheDrawnSize) {
  for (uint64_t others = 0; others < 4; ++others) {
    cluster.decisions.answers[DecisionKind::partition] = [](const Key&, uint64_t n) {
      return n - 1;
    };
    cluster.decisions.answers[DecisionKind::partition_shape] = [](const Key&, uint64_t) {
      return 5;
    };
    cluster.decisions.answers[DecisionKind::partition_member] = [others](const Key& key,
                                                                         uint64_t n) {
      return key.subject == LifeId{} ? others : hash_of(Seed{others}, key) % n;
    };
    network().set_weather({.partition_millionths = 1, .partition_max = seconds(1)});
    send(0, 1);
    network().set_weather({});
    const size_t side = 1 + others;
    EXPECT_EQ(blocked().size(), 2 * side * (kWorkers - side)) << others;
    network().heal();
    cluster.schedule.advance(seconds(3));
    for (uint32_t i = 0; i < kWorkers; ++i) cluster.sink(i).clear();
  }
}

TEST_F(PartitionsTest, ADrawnClogSlowsOrJams) {
  cluster.decisions.answers[DecisionKind::clog] = [](const Key&, uint64_t n) { return n - 1; };
  cluster.decisions.answers[DecisionKind::clog_shape] = [](const Key&, uint64_t) { return 3; };
  network().set_weather({.clog_millionths = 1, .partition_max = seconds(2)});
  send(0, 1);
  network().set_weather({});
  EXPECT_EQ(blocked(), both({{0, 1}}));
  cluster.schedule.advance(seconds(3));
  EXPECT_EQ(network().stats().clogs, 1u);
  EXPECT_EQ(network().stats().losses, 0u);
  EXPECT_EQ(cluster.sink(1).count(What::frame), 2u);
}

TEST_F(PartitionsTest, HealingCallsOffWhatIsStillToCome) {
  network().swizzle({"a", "b"}, seconds(4));
  network().heal();
  EXPECT_EQ(blocked(), Ways{});
  cluster.schedule.advance(seconds(2));
  EXPECT_EQ(blocked(), Ways{});
}

}  // namespace
}  // namespace rehearsal::net_fake
