#include "sim/device/memory.h"

#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace rehearsal::sim::device {
namespace {

constexpr size_t kBlockBytesMin = 512;

uintptr_t reserve(size_t bytes, int protection) {
  void* place =
      mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TORCH_CHECK(place != MAP_FAILED, "the memory of a simulated device, ", bytes,
              " bytes, cannot be had: give SimulatedDevicesOptions::memory less");
  return reinterpret_cast<uintptr_t>(place);
}

}  // namespace

Memory::Memory(c10::DeviceIndex device, size_t bytes)
    : device_(device), bytes_(bytes), seen_(reserve(bytes, PROT_NONE)) {
  try {
    real_ = reserve(bytes, PROT_READ | PROT_WRITE);
  } catch (...) {
    munmap(reinterpret_cast<void*>(seen_), bytes_);
    throw;
  }
}

Memory::~Memory() {
  munmap(reinterpret_cast<void*>(seen_), bytes_);
  munmap(reinterpret_cast<void*>(real_), bytes_);
}

Block& Memory::allocate(StreamQueue& stream, size_t bytes) {
  const size_t rounded = std::bit_ceil(std::max(bytes, kBlockBytesMin));
  look_after_busy_blocks();
  Block* block = freed_block(stream, rounded);
  if (block == nullptr) {
    TORCH_CHECK_WITH(OutOfMemoryError, rounded <= bytes_ - given_out_, "sim:", int{device_},
                     " has no ", bytes, " bytes left: ", bytes_in_use_, " of ", bytes_,
                     " are in use, the rest is kept for other sizes and streams");
    auto made = std::make_unique<Block>();
    made->address = seen_ + given_out_;
    made->bytes = rounded;
    given_out_ += rounded;
    block = made.get();
    blocks_.emplace(block->address, std::move(made));
  }
  block->stream = &stream;
  block->allocation = ++allocations_;
  block->used_on.clear();
  bytes_in_use_ += rounded;
  return *block;
}

void Memory::free(Block& block, std::vector<std::shared_ptr<Record>> busy_until, Clock done) {
  bytes_in_use_ -= block.bytes;
  block.done_before = std::move(done);
  block.busy_until = std::move(busy_until);
  if (block.busy_until.empty())
    free_[{block.stream->number(), block.bytes}].push_back(&block);
  else
    busy_.push_back(&block);
}

Block* Memory::find(const void* address) {
  auto behind = blocks_.upper_bound(reinterpret_cast<uintptr_t>(address));
  if (behind == blocks_.begin()) return nullptr;
  Block* block = std::prev(behind)->second.get();
  return reinterpret_cast<uintptr_t>(address) < block->address + block->bytes ? block : nullptr;
}

bool Memory::holds(const void* address) const {
  const auto place = reinterpret_cast<uintptr_t>(address);
  return seen_ <= place && place < seen_ + bytes_;
}

void* Memory::on_host(const void* address) const {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) - seen_ + real_);
}

Block* Memory::freed_block(StreamQueue& stream, size_t bytes) {
  const auto blocks = free_.find({stream.number(), bytes});
  if (blocks == free_.end() || blocks->second.empty()) return nullptr;
  Block* block = blocks->second.back();
  blocks->second.pop_back();
  return block;
}

void Memory::look_after_busy_blocks() {
  std::erase_if(busy_, [&](Block* block) {
    if (!std::ranges::all_of(block->busy_until, [](const auto& record) { return record->done; }))
      return false;
    for (const auto& record : block->busy_until) block->done_before.join(record->known);
    block->busy_until.clear();
    free_[{block->stream->number(), block->bytes}].push_back(block);
    return true;
  });
}

}  // namespace rehearsal::sim::device
