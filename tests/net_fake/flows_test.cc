#include "net_fake/flows.h"

#include <gtest/gtest.h>

#include "tests/conformance/transport_suite.h"
#include "tests/net_fake/fake_world.h"

namespace rehearsal::net_fake {
namespace {

using conformance::large_frame;
using conformance::numbers_from_one;
using conformance::What;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kMegabyte = 1'000'000;

// Machines that send and receive 10 MB/s; nothing else takes time. A frame of a megabyte takes a
// tenth of a second, and a little for its header.
class FlowsTest : public testing::Test {
 protected:
  FlowsTest()
      : cluster({"a", "b", "c", "d"}, {.link = {.delay = Delay::constant({})},
                                       .worker_bytes_per_second = 10 * kMegabyte}) {
    cluster.open_all();
    start = cluster.schedule.now();
  }
  void send(uint32_t from, uint32_t to, uint64_t number, uint64_t bytes = kMegabyte) {
    cluster.transport(from).send(WorkerId{to}, large_frame(number, bytes));
  }
  // When so many frames have arrived at `worker`, in milliseconds since the start.
  int64_t arrival(uint32_t worker, size_t frames) {
    EXPECT_TRUE(
        cluster.advance_until([&] { return cluster.sink(worker).count(What::frame) >= frames; }));
    return (cluster.schedule.now() - start) / milliseconds(1);
  }
  FakeCluster cluster;
  Instant start;
};

TEST_F(FlowsTest, OneFlowHasTheWholeBandwidth) {
  send(0, 1, 1);
  send(0, 1, 2);
  EXPECT_EQ(arrival(1, 1), 100);
  EXPECT_EQ(arrival(1, 2), 200);
  EXPECT_EQ(cluster.sink(1).sequences(Lane::large), numbers_from_one(2));
}

TEST_F(FlowsTest, ASenderSharesItsBandwidthAmongItsReceivers) {
  send(0, 1, 1);
  send(0, 2, 1);
  EXPECT_EQ(arrival(1, 1), 200);
  EXPECT_EQ(arrival(2, 1), 200);
}

TEST_F(FlowsTest, AReceiverSharesItsBandwidthAmongItsSenders) {
  send(1, 0, 1);
  send(2, 0, 1);
  send(3, 0, 1);
  EXPECT_EQ(arrival(0, 1), 300);
  EXPECT_EQ(arrival(0, 3), 300);
}

// Goal: a flow gets what those that are held up elsewhere leave. Method: the link from a to c is
// slow; a sends to b as well, and d to c.
TEST_F(FlowsTest, WhatOneCannotUseTheOthersGet) {
  cluster.network.from_to("a", "c").bytes_per_second(2 * kMegabyte);
  send(0, 1, 1);
  send(0, 2, 1);
  send(3, 2, 1);
  EXPECT_EQ(arrival(1, 1), 125);  // 8 MB/s
  EXPECT_EQ(arrival(2, 1), 125);  // the same: d has the 8 MB/s that a leaves of c
  EXPECT_EQ(arrival(2, 2), 500);  // a to c has its 2 MB/s all the time
}

TEST_F(FlowsTest, WhoComesLaterSharesFromThenOn) {
  send(0, 1, 1);
  cluster.schedule.advance(milliseconds(50));
  send(0, 2, 1);
  EXPECT_EQ(arrival(1, 1), 150);
  EXPECT_EQ(arrival(2, 1), 200);
}

TEST_F(FlowsTest, SmallFramesDoNotWait) {
  send(0, 1, 1, 50 * kMegabyte);
  cluster.transport(0).send(WorkerId{1}, conformance::small_frame(2));
  EXPECT_EQ(arrival(1, 1), 0);
  EXPECT_EQ(cluster.sink(1).sequences(Lane::small), std::vector<uint64_t>{2});
}

TEST_F(FlowsTest, AStalledFlowTakesNoBandwidthAndGoesOn) {
  send(0, 1, 1);
  send(0, 2, 1);
  const PartitionId jam = cluster.network.jam("a", "b");
  EXPECT_EQ(arrival(2, 1), 100);
  cluster.network.heal(jam);
  EXPECT_EQ(arrival(1, 1), 200);
}

TEST_F(FlowsTest, ALostLinkFreesItsBandwidth) {
  cluster.decisions.answers[DecisionKind::lost_suffix] = [](const Key&, uint64_t n) {
    return n - 1;
  };
  send(0, 1, 1);
  send(0, 2, 1);
  cluster.network.reset("a", "b");
  EXPECT_EQ(arrival(2, 1), 100);
  cluster.schedule.advance(seconds(1));
  EXPECT_EQ(cluster.sink(1).count(What::frame), 0u);
  EXPECT_EQ(cluster.transport(0).queued_bytes(WorkerId{1}), 0u);
}

TEST_F(FlowsTest, WhatIsNotSentYetIsQueuedAndItsEndIsReported) {
  for (uint64_t i = 1; i <= 10; ++i) send(0, 1, i);
  EXPECT_GT(cluster.transport(0).queued_bytes(WorkerId{1}), 9 * kMegabyte);
  EXPECT_EQ(arrival(1, 9), 900);
  EXPECT_EQ(arrival(1, 10), 1000);
  EXPECT_EQ(cluster.sink(0).count(What::drained), 1u);
}

}  // namespace
}  // namespace rehearsal::net_fake
