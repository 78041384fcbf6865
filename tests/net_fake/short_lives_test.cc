// Connections that break behind a few messages, again and again; and ports that refuse.
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "tests/conformance/transport_suite.h"
#include "tests/net_fake/fake_world.h"

namespace rehearsal::net_fake {
namespace {

using conformance::numbers_from_one;
using conformance::small_frame;
using conformance::What;
using std::chrono::milliseconds;
using std::chrono::seconds;

class ShortLivesTest : public testing::Test {
 protected:
  ShortLivesTest() : cluster({"a", "b", "c"}) {
    cluster.decisions.answers[DecisionKind::lost_suffix] = [](const Key&, uint64_t) { return 0; };
    cluster.open_all();
  }
  void send(uint32_t from, uint32_t to, uint64_t number) {
    cluster.transport(from).send(WorkerId{to}, small_frame(number));
  }
  static Frame bare_frame() {
    return {.header = {.kind = FrameKind::ack, .source = {1}, .destination = {2}}, .body = nullptr};
  }
  // Sends six messages from a to b as soon as a connection stands; how many of them arrive.
  size_t arrive_on_next_connection() {
    EXPECT_TRUE(cluster.advance_until([this] { return network().connected("a", "b"); }));
    cluster.schedule.advance(milliseconds(1));
    cluster.sink(1).clear();
    for (uint64_t i = 1; i <= 6; ++i) send(0, 1, i);
    cluster.schedule.advance(milliseconds(2));
    return cluster.sink(1).count(What::frame);
  }
  Network& network() { return cluster.network; }
  FakeCluster cluster;
};

TEST_F(ShortLivesTest, EveryConnectionBreaksBehindSoManyMessagesOfOneWay) {
  // Other frames are not counted, nor is the other way.
  network().between("a", "b").break_after(3);
  network().reset("a", "b");
  EXPECT_EQ(arrive_on_next_connection(), 3u);
  EXPECT_EQ(arrive_on_next_connection(), 3u);
  ASSERT_TRUE(cluster.advance_until([this] { return network().connected("a", "b"); }));
  cluster.schedule.advance(milliseconds(1));
  const uint64_t losses = network().stats().losses;
  for (int i = 0; i < 10; ++i) cluster.transport(0).send(kOne, bare_frame());
  for (uint64_t i = 1; i <= 3; ++i) send(1, 0, i);
  cluster.schedule.advance(milliseconds(2));
  EXPECT_EQ(network().stats().losses, losses);
  network().between("a", "b").break_after(0);
  EXPECT_EQ(arrive_on_next_connection(), 6u);
}

TEST_F(ShortLivesTest, TheWeatherMakesALinkFlakyForGoodOrNotAtAll) {
  // One choice for each link; calm weather ends it, also on a connection that stands.
  cluster.decisions.answers[DecisionKind::short_life] = [](const Key& key, uint64_t n) {
    return key.object.worker == kOne ? n - 1 : 0;
  };
  network().set_weather({.life_messages = 2});
  for (const char* other : {"b", "c"}) network().reset("a", other);
  EXPECT_EQ(arrive_on_next_connection(), 2u);
  EXPECT_EQ(arrive_on_next_connection(), 2u);
  ASSERT_TRUE(cluster.advance_until([this] { return network().connected("a", "c"); }));
  cluster.schedule.advance(milliseconds(1));
  for (uint64_t i = 1; i <= 6; ++i) send(0, 2, i);
  cluster.schedule.advance(milliseconds(2));
  EXPECT_EQ(cluster.sink(2).sequences(Lane::small), numbers_from_one(6));
  ASSERT_TRUE(cluster.advance_until([this] { return network().connected("a", "b"); }));
  network().set_weather({});
  EXPECT_EQ(arrive_on_next_connection(), 6u);
}

TEST_F(ShortLivesTest, TheWeatherMayCountEveryFrame) {
  // A connection that lives for one frame of a way is broken by the next, also by one that only
  // acknowledges; the other way has its own count.
  cluster.decisions.answers[DecisionKind::short_life] = [](const Key& key, uint64_t n) {
    return key.object.worker == kOne ? n - 1 : 0;
  };
  network().set_weather({.life_frames = 1});
  for (const char* other : {"b", "c"}) network().reset("a", other);
  EXPECT_EQ(arrive_on_next_connection(), 1u);
  ASSERT_TRUE(cluster.advance_until([this] { return network().connected("a", "b"); }));
  cluster.schedule.advance(milliseconds(1));
  const uint64_t losses = network().stats().losses;
  cluster.sink(1).clear();
  send(1, 0, 1);
  cluster.transport(0).send(kOne, bare_frame());
  cluster.schedule.advance(milliseconds(2));
  EXPECT_EQ(network().stats().losses, losses);
  EXPECT_EQ(cluster.sink(1).count(What::frame), 1u);
  cluster.transport(0).send(kOne, bare_frame());
  EXPECT_EQ(network().stats().losses, losses + 1);
  ASSERT_TRUE(cluster.advance_until([this] { return network().connected("a", "c"); }));
  cluster.schedule.advance(milliseconds(1));
  for (uint64_t i = 1; i <= 6; ++i) send(0, 2, i);
  cluster.schedule.advance(milliseconds(2));
  EXPECT_EQ(cluster.sink(2).sequences(Lane::small), numbers_from_one(6));
  ASSERT_TRUE(cluster.advance_until([this] { return network().connected("a", "b"); }));
  network().set_weather({});
  EXPECT_EQ(arrive_on_next_connection(), 6u);
}

TEST_F(ShortLivesTest, ARuleCutsEveryConnectionBehindSoManyFramesOrBytes) {
  {
    const auto guard = network().rule(cut_after_frames(4));
    EXPECT_EQ(arrive_on_next_connection(), 4u);
    EXPECT_EQ(arrive_on_next_connection(), 4u);
  }
  const uint64_t bytes = small_frame(1).bytes();
  const auto guard = network().rule(cut_after_bytes(2 * bytes));
  EXPECT_EQ(arrive_on_next_connection(), 2u);
  EXPECT_EQ(arrive_on_next_connection(), 2u);
}

// Ports that refuse.

TEST_F(ShortLivesTest, ThePortOfACrashedWorkerRefusesUntilItsNextLife) {
  // The survivor is told of each attempt, and for how long that has gone on.
  cluster.decisions.answers[DecisionKind::vacancy] = [](const Key&, uint64_t n) { return n - 1; };
  cluster.crash(1);
  cluster.schedule.advance(seconds(5));
  const auto last = cluster.sink(0).last(What::refused);
  EXPECT_EQ(last.peer, kOne);
  EXPECT_EQ(last.refusals.count, cluster.sink(0).count(What::refused));
  EXPECT_GT(last.refusals.count, 5u);
  EXPECT_GT(last.refusals.lasting, seconds(2));
  EXPECT_LT(last.refusals.lasting, seconds(5));
  EXPECT_GT(cluster.sink(2).count(What::refused), 5u);
  cluster.restart(1);
  cluster.transport(1).open(kZero);
  ASSERT_TRUE(cluster.advance_until([this] { return cluster.sink(0).up(); }));
  const size_t before = cluster.sink(0).count(What::refused);
  cluster.schedule.advance(seconds(5));
  EXPECT_EQ(cluster.sink(0).count(What::refused), before);
}

TEST_F(ShortLivesTest, AMachineThatIsGoneAnswersNothing) {
  cluster.decisions.answers[DecisionKind::vacancy] = [](const Key&, uint64_t) { return 0; };
  cluster.crash(1);
  cluster.schedule.advance(seconds(30));
  EXPECT_EQ(cluster.sink(0).count(What::refused), 0u);
}

TEST_F(ShortLivesTest, AWorkerThatLivesRefusesByChanceForASecondAtMost) {
  network().set_weather({.refuse_millionths = kMillion});
  network().reset("a", "b");
  ASSERT_TRUE(cluster.advance_until([this] { return network().connected("a", "b"); }));
  const auto last = cluster.sink(0).last(What::refused);
  EXPECT_GT(last.refusals.count, 3u);
  EXPECT_LT(last.refusals.lasting, seconds(1));
}

}  // namespace
}  // namespace rehearsal::net_fake
