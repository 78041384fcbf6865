#include <gtest/gtest.h>

#include "tests/conformance/transport_suite.h"
#include "tests/net_fake/fake_world.h"

namespace rehearsal::net_fake {
namespace {

using conformance::What;
using std::chrono::milliseconds;
using std::chrono::seconds;

class ConnectingTest : public testing::Test {
 protected:
  ConnectingTest() : cluster({"a", "b"}, {.connect_timeout = seconds(2)}) {
    network().everywhere().connect(Delay::constant(milliseconds(1)));
    cluster.decisions.answers[DecisionKind::back_off] = [](const Key&, uint64_t) { return 0; };
  }
  Network& network() { return cluster.network; }
  void open() {
    cluster.transport(0).open(WorkerId{1});
    cluster.transport(1).open(WorkerId{0});
  }
  Duration connected() {
    EXPECT_TRUE(cluster.advance_until([this] { return network().connected("a", "b"); }));
    return cluster.schedule.now().time_since_epoch();
  }
  FakeCluster cluster;
};

TEST_F(ConnectingTest, ADelayedConnectionStandsLater) {
  network().everywhere().connect(Delay::constant(milliseconds(300)));
  open();
  EXPECT_EQ(connected(), milliseconds(300));
}

TEST_F(ConnectingTest, ARefusedAttemptIsRepeatedAfterTheBackOff) {
  network().everywhere().refuse(0.5);
  cluster.decisions.answers[DecisionKind::refusal] = [](const Key& key, uint64_t n) {
    return key.number < 2 ? n - 1 : 0;
  };
  open();
  EXPECT_EQ(connected(), milliseconds(1 + 11 + 11));
  EXPECT_EQ(network().stats().refusals, 2u);
}

// Goal: an attempt that nobody answers takes as long as the one who tries waits for it.
TEST_F(ConnectingTest, AHangingAttemptIsGivenUpAndTheNextIsAnswered) {
  network().everywhere().hang(1.0);
  open();
  EXPECT_EQ(connected(), milliseconds(1 + 2000 + 11));
  EXPECT_EQ(network().stats().hangs, 1u);
  EXPECT_EQ(network().stats().refusals, 0u);
}

TEST_F(ConnectingTest, ACrashEndsAHangingAttempt) {
  network().everywhere().hang(1.0);
  open();
  cluster.schedule.advance(seconds(1));
  cluster.crash(1);
  cluster.schedule.advance(seconds(10));
  EXPECT_FALSE(network().connected("a", "b"));
  cluster.restart(1);
  cluster.transport(1).open(WorkerId{0});
  EXPECT_LT(connected(), seconds(14));
}

}  // namespace
}  // namespace rehearsal::net_fake
