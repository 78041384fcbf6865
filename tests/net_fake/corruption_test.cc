#include "net_fake/corruption.h"

#include <gtest/gtest.h>

#include "tests/conformance/transport_suite.h"
#include "tests/net_fake/fake_world.h"

namespace rehearsal::net_fake {
namespace {

using conformance::frame_with;
using conformance::numbers_from_one;
using conformance::small_frame;
using conformance::What;
using std::chrono::milliseconds;

// Goal: no flipped bit of any part of a frame passes. Method: each of them.
TEST(Corruption, EveryFlippedBitIsNoticed) {
  for (const Frame& frame : {small_frame(7, "an envelope"), frame_with(8, {3, 0, 40})}) {
    const uint64_t bits = wire_bits(frame);
    EXPECT_GT(bits, 600u);
    for (uint64_t bit = 0; bit < bits; ++bit)
      EXPECT_FALSE(check_with_flipped_bit(frame, bit).ok()) << bit;
  }
}

// Goal: it is the checksum that notices. Method: for all bits behind the header, the header is
// still right and announces the length that is there, so that nothing else could.
TEST(Corruption, WithoutTheChecksumMostFlippedBitsWouldPass) {
  const Frame frame = frame_with(8, {40});
  for (uint64_t bit = (kWireHeaderBytes + kWireSegmentBytes) * 8; bit < wire_bits(frame); ++bit) {
    const Status found = check_with_flipped_bit(frame, bit);
    ASSERT_FALSE(found.ok());
    EXPECT_NE(found.error().text.find("bad checksum"), std::string::npos) << found.error().text;
  }
}

// Goal: a frame in which a bit flips is not delivered; the connection breaks and is made again.
TEST(Corruption, BreaksTheConnection) {
  FakeCluster cluster({"a", "b"});
  cluster.open_all();
  cluster.network.everywhere().delay(milliseconds(1)).corrupt(0.001);
  cluster.decisions.answers[DecisionKind::corruption] = [](const Key& key, uint64_t n) {
    return key.number == 3 && key.occurrence == 0 ? n - 1 : 0;
  };
  cluster.decisions.answers[DecisionKind::lost_suffix] = [](const Key&, uint64_t) { return 0; };
  for (uint64_t i = 1; i <= 5; ++i) cluster.transport(0).send(WorkerId{1}, small_frame(i));
  ASSERT_TRUE(cluster.advance_until([&] { return cluster.sink(1).count(What::lost) == 1; }));
  EXPECT_EQ(cluster.sink(1).sequences(Lane::small), numbers_from_one(2));
  EXPECT_EQ(cluster.network.stats().corrupted, 1u);
  EXPECT_EQ(cluster.network.stats().losses, 1u);
  EXPECT_TRUE(cluster.advance_until([&] { return cluster.sink(1).count(What::up) == 2; }));
}

}  // namespace
}  // namespace rehearsal::net_fake
