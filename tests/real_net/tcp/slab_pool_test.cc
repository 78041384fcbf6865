#include "real_net/tcp/slab_pool.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <optional>
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

// Memory that it counts, or no memory.
class PinnedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    TORCH_CHECK(has_room, "the system pins no more");
    void* const memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    ++taken;
    in_use_of_all += 1;
    return {memory, memory, &PinnedMemory::end, c10::Device(c10::DeviceType::CPU)};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

  bool has_room = true;
  int taken = 0;
  static inline int in_use_of_all = 0;

 private:
  static void end(void* memory) {
    in_use_of_all -= 1;
    std::free(memory);
  }
};

TEST(SlabPool, WhatDevicesReadIsPinned) {
  PinnedMemory pinned;
  std::optional<SlabPool> pool(std::in_place, SlabPoolOptions{.pinned = &pinned});
  Segment read_by_device = pool->take(100'000, SegmentUse::device);
  const Segment read_by_host = pool->take(100'000, SegmentUse::host);
  EXPECT_EQ(pinned.taken, 1);
  EXPECT_EQ(pool->census().taken, 1u);
  EXPECT_EQ(read_by_device.use, SegmentUse::device);
  std::memset(read_by_device.data, 0xab, read_by_device.bytes);
  pool.reset();
  EXPECT_EQ(PinnedMemory::in_use_of_all, 1);
  read_by_device = {};
  EXPECT_EQ(PinnedMemory::in_use_of_all, 0);
}

TEST(SlabPool, WhereNothingCanBePinnedAnyMemoryDoes) {
  PinnedMemory pinned;
  pinned.has_room = false;
  SlabPool pool({.pinned = &pinned});
  const Segment segment = pool.take(100'000, SegmentUse::device);
  ASSERT_NE(segment.data, nullptr);
  EXPECT_EQ(pool.census().taken, 1u);
  EXPECT_NE(SlabPool().take(100'000, SegmentUse::device).data, nullptr);
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
