#include "net_fake/network.h"

#include <gtest/gtest.h>

#include "tests/conformance/transport_suite.h"
#include "tests/net_fake/fake_world.h"

namespace rehearsal::net_fake {
namespace {

using conformance::large_frame;
using conformance::numbers_from_one;
using conformance::small_frame;
using conformance::What;
using std::chrono::milliseconds;
using std::chrono::seconds;

class NetworkTest : public testing::Test {
 protected:
  NetworkTest() : cluster({"ps", "trainer0", "trainer1"}) { cluster.open_all(); }

  void send(uint32_t from, uint32_t to, Frame frame) {
    cluster.transport(from).send(WorkerId{to}, std::move(frame));
  }
  Network& network() { return cluster.network; }
  Duration now() { return cluster.schedule.now().time_since_epoch(); }
  bool arrived(uint32_t at, size_t frames) {
    return cluster.advance_until(
        [this, at, frames] { return cluster.sink(at).count(What::frame) >= frames; });
  }

  FakeCluster cluster;
};

// Links.

TEST_F(NetworkTest, DelaysAreThoseOfTheDirection) {
  network().between("ps", "trainer0").delay(milliseconds(7));
  network().from_to("trainer0", "ps").delay(milliseconds(30));
  const Duration start = now();
  send(0, 1, small_frame(1));
  ASSERT_TRUE(arrived(1, 1));
  EXPECT_EQ(now() - start, milliseconds(7));
  send(1, 0, small_frame(1));
  ASSERT_TRUE(arrived(0, 1));
  EXPECT_EQ(now() - start, milliseconds(37));
}

TEST_F(NetworkTest, UnknownWorkersAndImpossibleProbabilitiesAreRefused) {
  EXPECT_THROW((void)network().between("ps", "nobody"), std::invalid_argument);
  EXPECT_THROW((void)network().isolate("nobody"), std::invalid_argument);
  EXPECT_THROW(network().everywhere().retransmit(1.5), std::invalid_argument);
  EXPECT_THROW(network().everywhere().cut(-0.1), std::invalid_argument);
}

// Goal: a frame that is lost arrives later by TCP's time-out, and holds up what is behind it.
TEST_F(NetworkTest, ARetransmittedFrameHoldsUpWhatIsBehindIt) {
  network().everywhere().delay(milliseconds(1)).retransmit(0.01);
  cluster.decisions.answers[DecisionKind::retransmission] = [](const Key& key, uint64_t n) {
    return key.number == 1 && key.occurrence < 2 ? n - 1 : 0;  // The first frame, twice.
  };
  const Duration start = now();
  send(0, 1, small_frame(1));
  send(0, 1, small_frame(2));
  ASSERT_TRUE(arrived(1, 1));
  EXPECT_EQ(now() - start, milliseconds(1 + 200 + 400));
  ASSERT_TRUE(arrived(1, 2));
  EXPECT_EQ(now() - start, milliseconds(1 + 200 + 400));
  EXPECT_EQ(cluster.sink(1).sequences(Lane::small), numbers_from_one(2));
}

TEST_F(NetworkTest, LanesDoNotHoldUpEachOther) {
  network().everywhere().delay(milliseconds(1)).retransmit(0.01);
  cluster.decisions.answers[DecisionKind::retransmission] = [](const Key& key, uint64_t n) {
    return key.number == 1 && key.occurrence == 0 ? n - 1 : 0;
  };
  send(0, 1, large_frame(1));
  send(0, 1, small_frame(2));
  ASSERT_TRUE(arrived(1, 1));
  EXPECT_EQ(cluster.sink(1).sequences(Lane::small), std::vector<uint64_t>{2});
  EXPECT_TRUE(cluster.sink(1).sequences(Lane::large).empty());
}

TEST_F(NetworkTest, BandwidthMakesLargeFramesSlow) {
  network().everywhere().delay(Duration{}).bytes_per_second(100'000'000);
  const Duration start = now();
  send(0, 1, large_frame(1, 1'000'000));
  send(0, 1, large_frame(2, 1'000'000));
  ASSERT_TRUE(arrived(1, 2));
  EXPECT_GE(now() - start, milliseconds(20));
  EXPECT_LT(now() - start, milliseconds(21));
}

// Goal: a frame's delay depends on its name only, not on what else is sent.
TEST(Network, AnotherFrameElsewhereChangesNoDelay) {
  const auto arrival = [](bool busy) {
    FakeCluster cluster({"a", "b", "c"}, {}, Seed{5});
    cluster.open_all();
    if (busy)
      for (uint64_t i = 1; i < 50; ++i) cluster.transport(2).send(kOne, small_frame(i));
    cluster.transport(0).send(kOne, small_frame(1));
    const auto from_a = [&cluster] {
      for (const auto& report : cluster.sink(1).reports())
        if (report.what == What::frame && report.peer == kZero) return true;
      return false;
    };
    EXPECT_TRUE(cluster.advance_until(from_a));
    return cluster.schedule.now();
  };
  EXPECT_EQ(arrival(false), arrival(true));
}

TEST_F(NetworkTest, AResentFrameIsNamedByItsAttempt) {
  send(0, 1, small_frame(1));
  cluster.decisions.asked.clear();
  send(0, 1, small_frame(1));
  send(0, 1, small_frame(2));
  send(0, 1, small_frame(1));
  std::vector<std::string> names;
  for (const Key& key : cluster.decisions.asked) names.push_back(to_string(key));
  EXPECT_EQ(names, (std::vector<std::string>{"latency:0.0>1.0#1.1", "latency:0.0>1.0#2.0",
                                             "latency:0.0>1.0#1.2"}));
}

// Rules.

TEST_F(NetworkTest, TheFirstRuleThatDoesNotPassWinsAndGuardsEndThem) {
  const auto slow = [](const FrameView& frame) {
    return frame.to == kOne ? Action::deliver_after(milliseconds(100)) : Action::pass();
  };
  const auto slower = [](const FrameView&) { return Action::deliver_after(milliseconds(900)); };
  auto first = network().rule(slow);
  auto second = network().rule(slower);
  const Duration start = now();
  send(0, 1, small_frame(1));
  ASSERT_TRUE(arrived(1, 1));
  EXPECT_EQ(now() - start, milliseconds(100));
  send(1, 0, small_frame(1));
  ASSERT_TRUE(arrived(0, 1));
  EXPECT_EQ(now() - start, milliseconds(1000));
  first.remove();
  send(0, 1, small_frame(2));
  ASSERT_TRUE(arrived(1, 2));
  EXPECT_EQ(now() - start, milliseconds(1900));
  second = {};
  send(0, 1, small_frame(3));
  ASSERT_TRUE(arrived(1, 3));
  EXPECT_LT(now() - start, milliseconds(1910));
}

TEST_F(NetworkTest, ARuleSeesWhatTravels) {
  network().set_inspector([](const Frame& frame) {
    return static_cast<uint32_t>(frame.body ? frame.body->envelope.size() : 0);
  });
  std::vector<FrameView> seen;
  const auto guard = network().rule([&seen](const FrameView& frame) {
    seen.push_back(frame);
    return Action::pass();
  });
  send(0, 1, small_frame(4, "three"));
  send(2, 0, large_frame(9));
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].from, kZero);
  EXPECT_EQ(seen[0].to, kOne);
  EXPECT_EQ(seen[0].lane, Lane::small);
  EXPECT_EQ(seen[0].number, 4u);
  EXPECT_EQ(seen[0].message_type, 5u);
  EXPECT_EQ(seen[1].lane, Lane::large);
  EXPECT_GE(seen[1].bytes, 100'000u);
}

TEST_F(NetworkTest, ACutLosesTheFrameAndTheLinkIsMadeAgain) {
  const auto guard = network().rule([](const FrameView& frame) {
    return frame.number == 3 && frame.attempt == 0 ? Action::cut() : Action::pass();
  });
  for (uint64_t i = 1; i <= 5; ++i) send(0, 1, small_frame(i));
  ASSERT_TRUE(cluster.advance_until([this] {
    return cluster.sink(0).count(What::up) == 3 && cluster.sink(1).count(What::up) == 3;
  }));
  EXPECT_EQ(cluster.sink(0).count(What::lost), 1u);
  for (const uint64_t number : cluster.sink(1).sequences(Lane::small)) EXPECT_LT(number, 3u);
  EXPECT_EQ(network().stats().losses, 1u);
  send(0, 1, small_frame(3));
  const size_t before = cluster.sink(1).count(What::frame);
  EXPECT_TRUE(arrived(1, before + 1));
}

TEST_F(NetworkTest, ADrawnCutHitsTheFrameThatItsKeyNames) {
  network().everywhere().cut(0.001).delay(milliseconds(1));
  cluster.decisions.answers[DecisionKind::cut] = [](const Key& key, uint64_t n) {
    return to_string(key) == "cut:0.0>1.0#2.0" ? n - 1 : 0;
  };
  cluster.decisions.answers[DecisionKind::lost_suffix] = [](const Key&, uint64_t) { return 0; };
  for (uint64_t i = 1; i <= 3; ++i) send(0, 1, small_frame(i));
  ASSERT_TRUE(cluster.advance_until([this] { return cluster.sink(1).count(What::lost) == 1; }));
  EXPECT_EQ(cluster.sink(1).sequences(Lane::small), std::vector<uint64_t>{1});
}

// Goal: what is on its way when a link breaks arrives, but for the suffix that is drawn.
TEST_F(NetworkTest, TheLostSuffixIsDrawnForEachLane) {
  network().everywhere().delay(milliseconds(1));
  cluster.decisions.answers[DecisionKind::lost_suffix] = [](const Key&, uint64_t n) {
    return n > 3 ? 3 : 0;
  };
  for (uint64_t i = 1; i <= 10; ++i) send(0, 1, small_frame(i));
  send(0, 1, large_frame(1));
  network().reset("ps", "trainer0");
  ASSERT_TRUE(cluster.advance_until([this] { return cluster.sink(1).count(What::lost) == 1; }));
  EXPECT_EQ(cluster.sink(1).sequences(Lane::small), numbers_from_one(7));
  EXPECT_EQ(cluster.sink(1).sequences(Lane::large), numbers_from_one(1));
}

// Partitions.

TEST_F(NetworkTest, APartitionStallsExactlyTheWaysItNames) {
  network().everywhere().delay(milliseconds(1));
  const PartitionId split = network().split({"ps"}, {"trainer0"});
  send(0, 1, small_frame(1));
  send(1, 0, small_frame(1));
  send(0, 2, small_frame(1));
  send(1, 2, small_frame(1));
  cluster.schedule.advance(seconds(1));
  EXPECT_EQ(cluster.sink(0).count(What::frame), 0u);
  EXPECT_EQ(cluster.sink(1).count(What::frame), 0u);
  EXPECT_EQ(cluster.sink(2).count(What::frame), 2u);
  network().heal(split);
  EXPECT_TRUE(arrived(0, 1));
  EXPECT_TRUE(arrived(1, 1));
}

TEST_F(NetworkTest, AOneWayPartitionLetsTheOtherWayThrough) {
  (void)network().block_one_way("ps", "trainer0");
  send(0, 1, small_frame(1));
  send(1, 0, small_frame(1));
  EXPECT_TRUE(arrived(0, 1));
  cluster.schedule.advance(seconds(1));
  EXPECT_EQ(cluster.sink(1).count(What::frame), 0u);
  network().heal();
  EXPECT_TRUE(arrived(1, 1));
}

TEST_F(NetworkTest, OverlappingPartitionsHealOneByOne) {
  const PartitionId alone = network().isolate("ps");
  const PartitionId pair = network().split({"ps"}, {"trainer1"});
  send(0, 1, small_frame(1));
  send(0, 2, small_frame(1));
  network().heal(alone);
  EXPECT_TRUE(arrived(1, 1));
  cluster.schedule.advance(seconds(1));
  EXPECT_EQ(cluster.sink(2).count(What::frame), 0u);
  network().heal(pair);
  EXPECT_TRUE(arrived(2, 1));
}

TEST_F(NetworkTest, APartitionThatLastsEndsTheConnectionAndHealingMakesAnother) {
  (void)network().isolate("trainer0");
  send(0, 1, small_frame(1));
  cluster.schedule.advance(seconds(16));
  EXPECT_EQ(cluster.sink(0).count(What::lost), 1u);
  EXPECT_EQ(cluster.sink(1).count(What::lost), 2u);
  EXPECT_EQ(cluster.sink(0).last(What::lost).why.worker, "trainer0");
  EXPECT_EQ(cluster.sink(1).count(What::frame), 0u);
  EXPECT_FALSE(network().connected("ps", "trainer0"));
  network().heal();
  ASSERT_TRUE(cluster.advance_until([this] { return network().connected("ps", "trainer0"); }));
}

TEST_F(NetworkTest, ClosingBehindAPartitionReachesThePeerAsALossAtLast) {
  (void)network().isolate("trainer0");
  cluster.transport(0).close(kOne, {.text = "gone"});
  cluster.schedule.advance(seconds(1));
  EXPECT_EQ(cluster.sink(1).count(What::lost), 0u);
  cluster.schedule.advance(seconds(15));
  ASSERT_GE(cluster.sink(1).count(What::lost), 1u);
  network().heal();
  // The peer tries again and hears the reason then.
  ASSERT_TRUE(cluster.advance_until([this] {
    const auto lost = cluster.sink(1).last(What::lost);
    return lost.closed && lost.why.text == "gone";
  }));
}

TEST_F(NetworkTest, ADrawnPartitionHealsByItself) {
  network().set_weather({.partition_millionths = 1, .partition_max = seconds(2)});
  cluster.decisions.answers[DecisionKind::partition] = [](const Key& key, uint64_t n) {
    return key.number == 2 ? n - 1 : 0;
  };
  send(0, 1, small_frame(1));
  send(0, 1, small_frame(2));
  EXPECT_EQ(network().stats().partitions, 1u);
  ASSERT_TRUE(arrived(1, 2));
  EXPECT_LT(now(), seconds(4));
}

// Crashes.

TEST_F(NetworkTest, ACrashIsHeardOfAsALossUnlessChanceHidesIt) {
  cluster.crash(1);
  ASSERT_TRUE(cluster.advance_until([this] { return cluster.sink(0).count(What::lost) == 1; }));
  EXPECT_LT(now(), seconds(1));
}

TEST_F(NetworkTest, AHalfOpenLinkIsGivenUpAtItsOwnTime) {
  network().set_weather({.silence_millionths = kMillion});
  cluster.crash(1);
  send(0, 1, small_frame(1));
  cluster.schedule.advance(seconds(14));
  EXPECT_EQ(cluster.sink(0).count(What::lost), 0u);
  cluster.schedule.advance(seconds(2));
  EXPECT_EQ(cluster.sink(0).count(What::lost), 1u);
}

TEST_F(NetworkTest, ANewLifeReplacesAHalfOpenLink) {
  network().set_weather({.silence_millionths = kMillion});
  cluster.crash(1);
  cluster.restart(1);
  cluster.transport(1).open(kZero);
  ASSERT_TRUE(cluster.advance_until([this] { return cluster.sink(0).count(What::up) == 3; }));
  EXPECT_LT(now(), seconds(2));
  send(0, 1, small_frame(1));
  EXPECT_TRUE(arrived(1, 1));
}

TEST_F(NetworkTest, ACrashedWorkersFramesOnTheirWayMayStillArrive) {
  network().everywhere().delay(milliseconds(1));
  cluster.decisions.answers[DecisionKind::lost_suffix] = [](const Key&, uint64_t n) {
    return n > 2 ? 2 : 0;
  };
  for (uint64_t i = 1; i <= 5; ++i) send(1, 0, small_frame(i));
  send(0, 1, small_frame(1));
  cluster.crash(1);
  ASSERT_TRUE(cluster.advance_until([this] { return cluster.sink(0).count(What::lost) == 1; }));
  EXPECT_EQ(cluster.sink(0).sequences(Lane::small), numbers_from_one(3));
  EXPECT_EQ(cluster.sink(1).count(What::frame), 0u);
}

// Goal: nothing keeps the network busy when nothing is sent: a quiet cluster has no events.
TEST_F(NetworkTest, AnIdleNetworkSchedulesNothing) {
  cluster.schedule.advance(seconds(1));
  EXPECT_EQ(cluster.schedule.events(), 0u);
  cluster.crash(2);
  cluster.schedule.advance(seconds(60));
  EXPECT_EQ(cluster.schedule.events(), 0u);
}

}  // namespace
}  // namespace rehearsal::net_fake
