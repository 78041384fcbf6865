#include <gtest/gtest.h>

#include <memory>

#include "core/base/frame.h"
#include "tests/net_fake/fake_world.h"

namespace rehearsal::net_fake {
namespace {

using conformance::RecordingSink;

Frame frame_of(size_t envelope_bytes, size_t segments) {
  auto body = std::make_shared<FrameBody>();
  body->envelope.resize(envelope_bytes);
  body->segments.resize(segments);
  return {.header = {.kind = FrameKind::message,
                     .source = {mix(1, 0)},
                     .destination = {mix(2, 0)},
                     .sequence = 1},
          .body = std::move(body)};
}

TEST(LargeFrames, WhatNoFrameOfTcpHoldsIsNotCarried) {
  // Goal: what would end a process over TCP ends the simulated one as well, at the same check.
  // Method: the largest envelope arrives; one more byte, or too many segments.
  FakeCluster cluster({"a", "b"});
  cluster.open_all();
  cluster.run(0, [&] { cluster.transport(0).send(kOne, frame_of(kEnvelopeBytesMax, 0)); });
  EXPECT_TRUE(cluster.advance_until(
      [&] { return cluster.sink(1).count(RecordingSink::What::frame) == 1; }));
  EXPECT_DEATH(cluster.transport(0).send(kOne, frame_of(kEnvelopeBytesMax + 1, 0)),
               "check failed: body.envelope.size\\(\\) <= kEnvelopeBytesMax");
  EXPECT_DEATH(cluster.transport(0).send(kOne, frame_of(1, kSegmentCountMax + 1)),
               "check failed: body.segments.size\\(\\) <= kSegmentCountMax");
}

}  // namespace
}  // namespace rehearsal::net_fake
