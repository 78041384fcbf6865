#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/conformance/transport_suite.h"
#include "tests/real_net/support/tcp_world.h"

// The cases that the conformance suite leaves to a transport over TCP.
namespace rehearsal::real {
namespace {

using conformance::frame_with;
using conformance::is_prefix;
using conformance::large_frame;
using conformance::numbers_from_one;
using conformance::small_frame;
using What = conformance::RecordingSink::What;
using std::chrono::milliseconds;

class TcpLinkTest : public testing::Test {
 protected:
  WorkerId peer_of(int end) { return WorkerId{static_cast<uint32_t>(1 - end)}; }
  void open(int end) {
    world.run(end, [this, end] { world.transport(end).open(peer_of(end)); });
  }
  void send(int end, Frame frame) {
    world.run(end, [&] { world.transport(end).send(peer_of(end), std::move(frame)); });
  }
  bool both_up() {
    return world.advance_until([this] { return world.sink(0).up() && world.sink(1).up(); });
  }
  void connect() {
    open(0);
    open(1);
    ASSERT_TRUE(both_up());
  }

  TcpWorld world;
};

TEST_F(TcpLinkTest, TheLowerIdConnectsAndTheOtherOneWaits) {
  connect();
  EXPECT_EQ(world.proxy_to(1).connections(), 2u);
  EXPECT_EQ(world.proxy_to(0).connections(), 0u);
}

TEST_F(TcpLinkTest, TheHigherIdConnectsIfItWaitsInVain) {
  world.proxy_to(1).set_refusing(true);
  connect();
  EXPECT_EQ(world.proxy_to(1).connections(), 0u);
  EXPECT_EQ(world.proxy_to(0).connections(), 2u);
  send(1, small_frame(1));
  EXPECT_TRUE(world.advance_until([this] { return world.sink(0).count(What::frame) == 1; }));
}

TEST_F(TcpLinkTest, BothEndsThatConnectAtOnceAgreeOnOneLink) {
  // Goal: crossing attempts never leave two links or none. Method: delays make them cross.
  for (int round = 0; round < 10; ++round) {
    TcpWorld crossing;
    for (const int end : {0, 1})
      crossing.proxy_to(end).set_delay(milliseconds(20 + 5 * (round % 4)));
    for (const int end : {0, 1})
      crossing.run(end, [&] { crossing.transport(end).open(peer_of(end)); });
    ASSERT_TRUE(
        crossing.advance_until([&] { return crossing.sink(0).up() && crossing.sink(1).up(); }));
    for (const int end : {0, 1})
      crossing.run(end, [&] { crossing.transport(end).send(peer_of(end), small_frame(1)); });
    EXPECT_TRUE(crossing.advance_until([&] {
      return crossing.sink(0).count(What::frame) == 1 && crossing.sink(1).count(What::frame) == 1;
    }));
  }
}

TEST_F(TcpLinkTest, AnEndThatAloneLostTheLinkGetsANewOne) {
  // Goal: half-open links heal. Method: one direction ends in good order, the other end is silent.
  connect();
  world.proxy_to(1).half_close_all();
  ASSERT_TRUE(world.advance_until([this] { return world.sink(1).count(What::lost) >= 1; }));
  ASSERT_TRUE(world.advance_until([this] { return world.sink(1).count(What::up) >= 2; }));
  ASSERT_TRUE(both_up());
  send(0, small_frame(7));
  EXPECT_TRUE(world.advance_until([this] { return world.sink(1).count(What::frame) >= 1; }));
}

TEST_F(TcpLinkTest, ResetsInTheMiddleOfTrafficLoseOnlySuffixes) {
  // Goal: each lane keeps its order and repeats nothing. Method: the proxy resets after every
  // 300,000 bytes.
  connect();
  world.proxy_to(1).set_reset_after(300'000);
  for (uint64_t i = 1; i <= 300; ++i) {
    send(0, small_frame(i, std::string(2'000, 'x')));
    if (i % 10 == 0) send(0, large_frame(1'000 + i, 90'000));
  }
  ASSERT_TRUE(world.advance_until([this] { return world.sink(1).count(What::lost) >= 1; }));
  world.proxy_to(1).set_reset_after(0);
  // A reset may still be on its way when both ends look well: then the next frame goes with it.
  uint64_t last_sent = 5'000;
  const auto arrived = [&] {
    const auto& frames = world.sink(1).frames();
    return std::any_of(frames.begin(), frames.end(),
                       [&](const Frame& frame) { return frame.header.sequence == last_sent; });
  };
  while (!arrived()) {
    ASSERT_LT(last_sent, 5'010u);
    ASSERT_TRUE(both_up());
    const size_t lost = world.sink(0).count(What::lost);
    send(0, small_frame(++last_sent));
    ASSERT_TRUE(
        world.advance_until([&] { return arrived() || world.sink(0).count(What::lost) > lost; }));
  }
  uint64_t last_small = 0;
  uint64_t last_large = 0;
  for (const Frame& frame : world.sink(1).frames()) {
    uint64_t& last = lane_of(frame) == Lane::small ? last_small : last_large;
    EXPECT_GT(frame.header.sequence, last);
    last = frame.header.sequence;
  }
  EXPECT_EQ(last_small, last_sent);
}

TEST_F(TcpLinkTest, SmallFramesOvertakeALargeOne) {
  // Goal: two lanes. Method: a large frame of which the proxy holds back the end, small ones
  // behind it.
  connect();
  world.proxy_to(1).set_hold_after(1 << 20);
  send(0, large_frame(1, 8 << 20));
  for (uint64_t i = 2; i <= 20; ++i) send(0, small_frame(i));
  ASSERT_TRUE(world.advance_until([this] { return world.sink(1).count(What::frame) == 19; }));
  EXPECT_EQ(world.sink(1).frames().back().header.sequence, 20u);
  world.proxy_to(1).set_hold_after(0);
  ASSERT_TRUE(world.advance_until([this] { return world.sink(1).count(What::frame) == 20; }));
  EXPECT_EQ(world.sink(1).frames().back().header.sequence, 1u);
}

TEST_F(TcpLinkTest, LargeFramesBothWaysWithSmallOnesBetweenArriveWhole) {
  connect();
  constexpr uint64_t kLarge = 6;
  constexpr uint64_t kSmall = 400;
  for (const int end : {0, 1}) {
    for (uint64_t i = 1; i <= kLarge; ++i) send(end, frame_with(i, {5 << 20, 1, 70'000, 0, 33}));
    for (uint64_t i = 1; i <= kSmall; ++i) send(end, small_frame(i));
  }
  for (const int end : {0, 1}) {
    ASSERT_TRUE(
        world.advance_until([&] { return world.sink(end).count(What::frame) == kLarge + kSmall; }));
    EXPECT_EQ(world.sink(end).sequences(Lane::small), numbers_from_one(kSmall));
    EXPECT_EQ(world.sink(end).sequences(Lane::large), numbers_from_one(kLarge));
    const Frame reference = frame_with(3, {5 << 20, 1, 70'000, 0, 33});
    for (const Frame& frame : world.sink(end).frames()) {
      if (lane_of(frame) == Lane::small || frame.header.sequence != 3) continue;
      for (size_t i = 0; i < 5; ++i)
        EXPECT_TRUE(conformance::same_bytes(frame.body->segments[i], reference.body->segments[i]));
    }
  }
}

TEST_F(TcpLinkTest, ALossNamesTheWorkerAndTheCause) {
  connect();
  world.reset_link();
  ASSERT_TRUE(world.advance_until([this] { return world.sink(0).count(What::lost) >= 1; }));
  const Error why = world.sink(0).last(What::lost).why;
  EXPECT_EQ(why.kind, ErrorKind::peer_lost);
  EXPECT_EQ(why.worker, "1");
  EXPECT_NE(why.text.find("connection to worker '1' lost: "), std::string::npos) << why.text;
}

TEST_F(TcpLinkTest, APeerThatCameBackElsewhereIsFoundAgainFromBothEnds) {
  // Goal: who stays learns from the link where the one that came back is. Method: the way back to
  // the one that stays is closed, so that only the latter can make the link again.
  TransportOptions options = TcpWorld::quick_options();
  const auto address_of = [](const TcpEnd& end) { return end.transport.address(); };
  TcpEnd stays({0}, 1, options);
  auto former = std::make_unique<TcpEnd>(WorkerId{1}, 1, options);
  FaultProxy way_back(address_of(stays).port);
  const auto wait_for_link = [&](TcpEnd& other) {
    return wait_until(stays.runtime, [&] {
      return stays.sink.up() && other.sink.up() &&
             stays.sink.last(What::up).hello.incarnation == other.hello.incarnation;
    });
  };
  run_on(stays.runtime, [&] {
    stays.transport.set_address({1}, address_of(*former));
    stays.transport.open({1});
  });
  run_on(former->runtime, [&] { former->transport.open({0}); });
  ASSERT_TRUE(wait_for_link(*former));
  former->end();
  TcpEnd back({1}, 2, options);
  ASSERT_NE(address_of(back), address_of(*former));
  run_on(back.runtime, [&] {
    back.transport.set_address({0}, {.host = "127.0.0.1", .port = way_back.port()});
    back.transport.open({0});
  });
  ASSERT_TRUE(wait_for_link(back));
  way_back.set_refusing(true);
  way_back.reset_all();
  ASSERT_TRUE(wait_until(stays.runtime, [&] { return stays.sink.count(What::up) >= 3; }));
  ASSERT_TRUE(wait_for_link(back));
  EXPECT_EQ(way_back.connections(), 0u);
}

TEST_F(TcpLinkTest, AnAttemptAtAnAddressThatIsNoLongerTrueIsGivenUp) {
  // Goal: a peer that has moved is not waited for where it was. Method: there, somebody accepts and
  // says nothing, for longer than this test takes.
  TransportOptions options = TcpWorld::quick_options();
  options.handshake_timeout = std::chrono::hours(1);
  FaultProxy silent;
  silent.set_stalled(true);
  TcpEnd first({0}, 1, options);
  TcpEnd second({1}, 1, options);
  run_on(first.runtime, [&] {
    first.transport.set_address({1}, {.host = "127.0.0.1", .port = silent.port()});
    first.transport.open({1});
  });
  run_on(second.runtime, [&] { second.transport.open({0}); });
  // Both its connections stand, and wait.
  ASSERT_TRUE(wait_until(first.runtime, [&] { return first.transport.census().writes >= 2; }));
  run_on(first.runtime, [&] { first.transport.set_address({1}, second.transport.address()); });
  EXPECT_TRUE(wait_until(first.runtime, [&] { return first.sink.up() && second.sink.up(); }));
}

TEST_F(TcpLinkTest, APeerWithoutAnAddressIsWaitedFor) {
  // Goal: who has yet to come costs nothing, and may come. Method: nobody is told of it; it knows.
  TransportOptions options = TcpWorld::quick_options();
  TcpEnd first({0}, 1, options);
  run_on(first.runtime, [&] {
    for (const uint32_t peer : {1u, 2u}) first.transport.open({peer});
  });
  TcpEnd second({1}, 1, options);
  run_on(second.runtime, [&] {
    second.transport.set_address({0}, first.transport.address());
    second.transport.open({0});
  });
  ASSERT_TRUE(wait_until(first.runtime, [&] { return first.sink.up() && second.sink.up(); }));
  EXPECT_EQ(first.sink.count(What::lost), 0u);
  run_on(first.runtime, [&] { first.transport.close({2}, {.text = "it never came"}); });
}

TEST_F(TcpLinkTest, OneCallOfEachKindSuffices) {
  // Goal: a frame costs one write and one read. Method: count over many exchanges.
  connect();
  for (const int end : {0, 1})
    world.sink(end).set_reaction([this, end](const auto& report) {
      if (report.what != What::frame || report.frame.header.sequence >= 400) return;
      world.transport(end).send(report.peer, small_frame(report.frame.header.sequence + 1));
    });
  const auto before = world.transport(0).census();
  send(0, small_frame(1));
  ASSERT_TRUE(world.advance_until([this] { return world.sink(1).count(What::frame) == 200; }));
  ASSERT_TRUE(world.advance_until([this] { return world.sink(0).count(What::frame) == 200; }));
  const auto after = world.transport(0).census();
  EXPECT_LE(after.writes - before.writes, 202u);
  EXPECT_LE(after.reads - before.reads, 202u);
}

TEST(Listening, APortInUseIsAnErrorThatSaysSo) {
  const TcpEnd first({0}, 1, {});
  RealRuntime runtime({.worker_threads = 1});
  SlabPool pool;
  TcpTransport second(runtime, pool, {});
  const Status status = second.listen(first.transport.address());
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().text.find("in use"), std::string::npos) << status.error().text;
  runtime.stop();
}

TEST(Listening, AnUnknownHostIsAnErrorThatNamesIt) {
  RealRuntime runtime({.worker_threads = 1});
  SlabPool pool;
  TcpTransport transport(runtime, pool, {});
  const Status status = transport.listen({.host = "no.such.host.invalid", .port = 1});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().text.find("no.such.host.invalid"), std::string::npos);
  runtime.stop();
}

}  // namespace
}  // namespace rehearsal::real
