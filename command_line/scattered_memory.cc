#include "command_line/scattered_memory.h"

#include <sys/mman.h>

#include <array>
#include <cstring>
#include <utility>

#include "core/base/hash.h"

namespace rehearsal::command_line {
namespace {

constexpr size_t kBlockBytesMax = 1024;
constexpr size_t kBlockBytesStep = 16;  // malloc's own
constexpr size_t kFreeOfEachSize = 48;
constexpr size_t kHeapMove = 100 * 1024 + 16;  // below what malloc takes from the system apart
constexpr size_t kLargeMove = 37 * 4096;
constexpr size_t kStackBytes = 128 * 1024;

[[gnu::noinline]] void leave_bytes_on_the_stack() {
  std::array<char, kStackBytes> bytes;
  std::memset(bytes.data(), 0xa5, bytes.size());
  asm volatile("" : : "r"(bytes.data()) : "memory");  // somebody might read them
}

template <class T>
void shuffle(std::vector<T>& items, uint64_t seed) {
  for (size_t left = items.size(); left > 1; --left)
    std::swap(items[left - 1], items[mix(seed, left) % left]);
}

}  // namespace

ScatteredMemory::ScatteredMemory() {
  kept_.push_back(std::make_unique<std::byte[]>(kHeapMove));
  // Stays mapped as long as the process lives.
  static_cast<void>(
      mmap(nullptr, kLargeMove, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
}

void ScatteredMemory::scatter(uint64_t seed) {
  leave_bytes_on_the_stack();
  kept_.resize(1);
  std::vector<Block> free;
  for (size_t i = 0; i < kFreeOfEachSize; ++i) {
    for (size_t bytes = kBlockBytesStep; bytes <= kBlockBytesMax; bytes += kBlockBytesStep) {
      free.push_back(std::make_unique_for_overwrite<std::byte[]>(bytes - sizeof(size_t)));
      kept_.push_back(std::make_unique_for_overwrite<std::byte[]>(bytes - sizeof(size_t)));
    }
  }
  shuffle(free, seed);
  for (Block& block : free) block.reset();
}

}  // namespace rehearsal::command_line
