#include "real_net/tcp/slab_pool.h"

#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "core/base/check.h"

namespace rehearsal::real {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr int kClassesPerDoubling = 4;
constexpr uint64_t kSmallestSlab = 256;
constexpr uint64_t kMappedFrom = uint64_t{1} << 20;  // larger ones are mapped, not allocated
constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr size_t kClassCount = 64 * kClassesPerDoubling;

struct SizeClass {
  size_t index = 0;
  uint64_t bytes = 0;
};

// The smallest class that holds `bytes`: sizes are (4 + k) / 4 of a power of two.
SizeClass class_of(uint64_t bytes) {
  const uint64_t wanted = std::max(bytes, kSmallestSlab);
  const int exponent = std::bit_width(wanted - 1) - 1;  // 2^exponent < wanted ≤ 2^(exponent + 1)
  const uint64_t step = (uint64_t{1} << exponent) / kClassesPerDoubling;
  const uint64_t steps = (wanted + step - 1) / step;  // in (4, 8]
  return {static_cast<size_t>(exponent) * kClassesPerDoubling + (steps - kClassesPerDoubling - 1),
          steps * step};
}

std::byte* allocate(uint64_t bytes) {
  if (bytes < kMappedFrom) {
    void* memory = std::aligned_alloc(kAlignment, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<std::byte*>(memory);
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  if (bytes >= 2 * kHugePage) madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

void release(std::byte* memory, uint64_t bytes) {
  if (bytes < kMappedFrom) {
    std::free(memory);
  } else {
    munmap(memory, bytes);
  }
}

// Null: there is no room for more of it. The system may refuse to pin what it has.
std::shared_ptr<void> take_pinned(c10::Allocator& pinned, uint64_t bytes) {
  try {
    c10::DataPtr data = pinned.allocate(bytes);
    void* const memory = data.get();
    return {memory, [held = std::make_shared<c10::DataPtr>(std::move(data))](void*) {}};
  } catch (const c10::Error&) {
    return nullptr;
  }
}

}  // namespace

class SlabPool::Slabs {
 public:
  explicit Slabs(const SlabPoolOptions& options) : options_(options) {}
  ~Slabs() {
    for (size_t i = 0; i < free_.size(); ++i)
      for (const Slab& slab : free_[i]) release(slab.memory, slab.bytes);
  }

  std::byte* take(const SizeClass& size) {
    {
      const std::lock_guard lock(mutex_);
      ++census_.taken;
      std::vector<Slab>& slabs = free_[size.index];
      if (!slabs.empty()) {
        std::byte* memory = slabs.back().memory;
        slabs.pop_back();
        census_.idle_bytes -= size.bytes;
        ++census_.recycled;
        ++census_.in_use;
        return memory;
      }
    }
    std::byte* memory = allocate(size.bytes);
    const std::lock_guard lock(mutex_);
    ++census_.in_use;
    return memory;
  }

  void give_back(std::byte* memory, const SizeClass& size) {
    {
      const std::lock_guard lock(mutex_);
      --census_.in_use;
      if (census_.idle_bytes + size.bytes <= options_.idle_bytes_max) {
        free_[size.index].push_back({memory, size.bytes});
        census_.idle_bytes += size.bytes;
        return;
      }
    }
    release(memory, size.bytes);
  }

  [[nodiscard]] c10::Allocator* pinned() const { return options_.pinned; }

  Census census() const {
    const std::lock_guard lock(mutex_);
    return census_;
  }

 private:
  struct Slab {
    std::byte* memory;
    uint64_t bytes;
  };
  const SlabPoolOptions options_;
  mutable std::mutex mutex_;
  std::array<std::vector<Slab>, kClassCount> free_;
  Census census_;
};

SlabPool::SlabPool(const SlabPoolOptions& options) : slabs_(std::make_shared<Slabs>(options)) {}
SlabPool::~SlabPool() = default;

Segment SlabPool::take(uint64_t bytes, SegmentUse use) {
  REHEARSAL_CHECK(bytes <= kSegmentBytesMax, bytes);
  if (bytes == 0) return {.owner = nullptr, .data = nullptr, .bytes = 0, .use = use};
  if (use == SegmentUse::device && slabs_->pinned() != nullptr)
    if (std::shared_ptr<void> owner = take_pinned(*slabs_->pinned(), bytes)) {
      auto* const memory = static_cast<std::byte*>(owner.get());
      return {.owner = std::move(owner), .data = memory, .bytes = bytes, .use = use};
    }
  const SizeClass size = class_of(bytes);
  std::byte* memory = slabs_->take(size);
  std::shared_ptr<void> owner(
      memory, [slabs = slabs_, size](std::byte* slab) { slabs->give_back(slab, size); });
  return {.owner = std::move(owner), .data = memory, .bytes = bytes, .use = use};
}

SlabPool::Census SlabPool::census() const { return slabs_->census(); }

std::function<SlabPool::Census()> SlabPool::watch() const {
  return [slabs = slabs_] { return slabs->census(); };
}

}  // namespace rehearsal::real
