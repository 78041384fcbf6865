#include "sim/world/heap_pool.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

#include "core/base/check.h"

namespace rehearsal::sim {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr size_t kKeptMax = 64;                        // free blocks of each class
constexpr uint64_t kKeptBytesMax = uint64_t{1} << 26;  // larger blocks are not kept

}  // namespace

// Free memory by the power of two of its size.
struct HeapPool::Shelves {
  Shelves() = default;
  Shelves(const Shelves&) = delete;
  Shelves& operator=(const Shelves&) = delete;
  ~Shelves() {
    for (const auto& shelf : free)
      for (void* block : shelf) std::free(block);
  }

  void* take(int size_class) {
    ++outstanding;
    auto& shelf = free[static_cast<size_t>(size_class)];
    if (!shelf.empty()) {
      void* block = shelf.back();
      shelf.pop_back();
      return block;
    }
    void* block = std::aligned_alloc(kAlignment, uint64_t{1} << size_class);
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }
  void give_back(void* block, int size_class) {
    --outstanding;
    auto& shelf = free[static_cast<size_t>(size_class)];
    if (shelf.size() < kKeptMax && uint64_t{1} << size_class <= kKeptBytesMax) {
      shelf.push_back(block);
    } else {
      std::free(block);
    }
  }

  std::array<std::vector<void*>, 64> free;
  uint64_t outstanding = 0;
};

HeapPool::HeapPool(c10::Allocator* pinned)
    : pinned_(pinned), shelves_(std::make_shared<Shelves>()) {}
HeapPool::~HeapPool() = default;

Segment HeapPool::take(uint64_t bytes, SegmentUse use) {
  REHEARSAL_CHECK(bytes <= kSegmentBytesMax, bytes);
  if (use == SegmentUse::device && pinned_ != nullptr && bytes > 0) {
    ++shelves_->outstanding;
    void* block = pinned_->raw_allocate(bytes);
    std::shared_ptr<void> owner(block, [shelves = shelves_, pinned = pinned_](void* freed) {
      --shelves->outstanding;
      pinned->raw_deallocate(freed);
    });
    return {.owner = std::move(owner),
            .data = static_cast<std::byte*>(block),
            .bytes = bytes,
            .use = use};
  }
  const int size_class = std::bit_width(std::max(bytes, kAlignment) - 1);
  void* block = shelves_->take(size_class);
  std::shared_ptr<void> owner(block, [shelves = shelves_, size_class](void* freed) {
    shelves->give_back(freed, size_class);
  });
  return {.owner = std::move(owner),
          .data = static_cast<std::byte*>(block),
          .bytes = bytes,
          .use = use};
}

uint64_t HeapPool::outstanding() const { return shelves_->outstanding; }

}  // namespace rehearsal::sim
