#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "sim/device/stream_queue.h"

namespace rehearsal::sim::device {

// All memory is filled with it: every floating-point number of such bytes is a NaN.
inline constexpr int kPoison = 0xFF;

// A piece of a device's memory.
struct Block {
  uintptr_t address = 0;  // as tensors see it
  size_t bytes = 0;
  StreamQueue* stream = nullptr;                    // for which it was given out, or is kept
  uint64_t allocation = 0;                          // as which it was given out last; from 1
  std::set<StreamQueue*> used_on;                   // by record_stream
  std::vector<std::shared_ptr<Record>> busy_until;  // of a block that was freed
  Clock done_before;  // what was known to be done when it was freed, and could be had again
  Accesses accesses;
};

// The memory of one device. Tensors have addresses that nobody may read or write: code of the
// host that does so ends its process, as on a GPU. Kernels use the same bytes at another place.
//
// It gives memory out as LibTorch's allocator for CUDA does, which is what makes it find storage
// that is freed too early: a block that is freed can be had again at once by the stream that it was
// given out for, also while the device still works with it. Where other streams were recorded
// (`record_stream`), not before these have done what they had to do then. The block that was freed
// last goes first.
class Memory {
 public:
  // Throws c10::Error if the machine has not so much address space.
  Memory(c10::DeviceIndex device, size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // A block for a stream, with what is left in it. Throws c10::OutOfMemoryError.
  Block& allocate(StreamQueue& stream, size_t bytes);
  // The block can be had again when all these records are done. `done`: what the host knows to be.
  void free(Block& block, std::vector<std::shared_ptr<Record>> busy_until, Clock done);

  // The block in use in which a tensor's data begins; null where there is none.
  [[nodiscard]] Block* find(const void* address);
  [[nodiscard]] bool holds(const void* address) const;
  // Where the bytes are that tensors see at this address.
  [[nodiscard]] void* on_host(const void* address) const;

  [[nodiscard]] size_t bytes_in_use() const { return bytes_in_use_; }

 private:
  Block* freed_block(StreamQueue& stream, size_t bytes);
  void look_after_busy_blocks();

  c10::DeviceIndex device_;
  size_t bytes_;
  uintptr_t seen_ = 0;  // where tensors see it
  uintptr_t real_ = 0;  // where it is
  size_t given_out_ = 0;
  size_t bytes_in_use_ = 0;
  uint64_t allocations_ = 0;
  std::map<uintptr_t, std::unique_ptr<Block>> blocks_;             // all that there ever were
  std::map<std::pair<size_t, size_t>, std::vector<Block*>> free_;  // by stream and bytes
  std::vector<Block*> busy_;
};

}  // namespace rehearsal::sim::device
