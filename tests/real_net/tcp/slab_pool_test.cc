#include "real_net/tcp/slab_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace rehearsal::real {
namespace {

TEST(SlabPool, SegmentsAreAlignedAndWritableAtEverySize) {
  SlabPool pool;
  for (uint64_t bytes = 1; bytes < (uint64_t{3} << 20); bytes = bytes * 5 / 4 + 1) {
    const Segment segment = pool.take(bytes, {});
    ASSERT_EQ(segment.bytes, bytes);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(segment.data) % 64, 0u);
    std::memset(segment.data, 0xab, bytes);
  }
}

TEST(SlabPool, NothingIsANullSegment) {
  SlabPool pool;
  EXPECT_EQ(pool.take(0, {}).data, nullptr);
  EXPECT_EQ(pool.census().taken, 0u);
}

TEST(SlabPool, ASlabIsUsedAgainLastInFirstOut) {
  SlabPool pool;
  Segment first = pool.take(100'000, {});
  Segment second = pool.take(100'001, {});
  const std::byte* last_freed = second.data;
  first = {};
  second = {};
  EXPECT_EQ(pool.take(99'999, {}).data, last_freed);
  EXPECT_EQ(pool.census().recycled, 1u);
}

TEST(SlabPool, WhatIsInUseIsCounted) {
  SlabPool pool;
  Segment first = pool.take(100'000, {});
  Segment second = pool.take(100'000, {});
  EXPECT_EQ(pool.census().in_use, 2u);
  first = {};
  EXPECT_EQ(pool.census().in_use, 1u);
  first = pool.take(100'000, {});
  EXPECT_EQ(pool.census().in_use, 2u);
  first = second = {};
  EXPECT_EQ(pool.census().in_use, 0u);
}

TEST(SlabPool, WhatItKeepsIsBounded) {
  SlabPool pool({.idle_bytes_max = 1 << 20});
  {
    std::vector<Segment> segments;
    for (int i = 0; i < 64; ++i) segments.push_back(pool.take(100'000, {}));
  }
  EXPECT_LE(pool.census().idle_bytes, uint64_t{1} << 20);
  EXPECT_GT(pool.census().idle_bytes, 0u);
}

TEST(SlabPool, SegmentsOutliveTheirPool) {
  Segment segment;
  std::function<SlabPool::Census()> watch;
  {
    SlabPool pool;
    watch = pool.watch();
    segment = pool.take(2 << 20, {});
  }
  std::memset(segment.data, 1, segment.bytes);
  EXPECT_EQ(watch().in_use, 1u);
  segment = {};
  EXPECT_EQ(watch().in_use, 0u);
}

TEST(SlabPool, AHugeSegmentTakesNoMemoryBeforeItIsTouched) {
  SlabPool pool;
  const Segment segment = pool.take(uint64_t{1} << 36, {});
  segment.data[uint64_t{1} << 35] = std::byte{1};
}

TEST(SlabPool, ManyThreadsTakeAndFree) {
  SlabPool pool;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&pool, i] {
      for (int round = 0; round < 2'000; ++round) {
        const Segment segment = pool.take(1'000 + 100 * (round % 7), {});
        segment.data[0] = std::byte(i);
        segment.data[segment.bytes - 1] = std::byte(i);
        ASSERT_EQ(segment.data[0], std::byte(i));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.census().taken, 8'000u);
}

}  // namespace
}  // namespace rehearsal::real
