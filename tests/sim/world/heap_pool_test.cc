#include "sim/world/heap_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "sim/device/pinned_memory.h"

namespace rehearsal::sim {
namespace {

TEST(HeapPool, SegmentsAreAlignedAndOfTheirSize) {
  HeapPool pool;
  std::vector<Segment> segments;
  for (const uint64_t bytes :
       {uint64_t{1}, uint64_t{63}, uint64_t{64}, uint64_t{65}, uint64_t{4096}, uint64_t{100'000}}) {
    segments.push_back(pool.take(bytes, {}));
    const Segment& segment = segments.back();
    EXPECT_EQ(segment.bytes, bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(segment.data) % 64, 0u);
    std::memset(segment.data, 0x5a, bytes);
  }
  EXPECT_EQ(pool.outstanding(), 6u);
  segments.clear();
  EXPECT_EQ(pool.outstanding(), 0u);
}

TEST(HeapPool, AFreedSegmentsMemoryIsUsedAgain) {
  HeapPool pool;
  const std::byte* first = pool.take(1000, {}).data;
  EXPECT_EQ(pool.take(900, {}).data, first);
  EXPECT_NE(pool.take(3000, {}).data, first);
}

TEST(HeapPool, WhatDevicesReadIsPinned) {
  std::optional<HeapPool> pool(std::in_place, device::pinned_memory());
  const Segment read_by_device = pool->take(1000, SegmentUse::device);
  const Segment read_by_host = pool->take(1000, SegmentUse::host);
  EXPECT_TRUE(device::is_pinned(read_by_device.data));
  EXPECT_FALSE(device::is_pinned(read_by_host.data));
  EXPECT_EQ(pool->outstanding(), 2u);
  pool.reset();
  std::memset(read_by_device.data, 1, 1000);
}

TEST(HeapPool, SegmentsMayOutliveThePool) {
  std::optional<HeapPool> pool(std::in_place);
  const Segment segment = pool->take(100, {});
  pool.reset();
  std::memset(segment.data, 1, 100);
}

}  // namespace
}  // namespace rehearsal::sim
