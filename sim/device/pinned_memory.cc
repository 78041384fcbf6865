#include "sim/device/pinned_memory.h"

#include <c10/core/impl/alloc_cpu.h>

#include <cstring>
#include <map>
#include <mutex>

namespace rehearsal::sim::device {
namespace {

// It belongs to the process, as the host's memory does; threads of different devices share it.
class PinnedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* data = c10::alloc_cpu(bytes);
    if (data != nullptr) {
      const std::scoped_lock lock(guard_);
      ends_[data] = static_cast<char*>(data) + bytes;
    }
    return {data, data, &PinnedMemory::end, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &PinnedMemory::end; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

  bool holds(const void* address) {
    const std::scoped_lock lock(guard_);
    const auto behind = ends_.upper_bound(const_cast<void*>(address));
    return behind != ends_.begin() && address < std::prev(behind)->second;
  }

 private:
  static void end(void* data);

  std::mutex guard_;
  std::map<void*, const char*> ends_;  // of each piece, by where it begins
};

PinnedMemory& of_this_process() {
  static auto* memory = new PinnedMemory;  // outlives the last tensor
  return *memory;
}

void PinnedMemory::end(void* data) {
  if (data == nullptr) return;
  {
    const std::scoped_lock lock(of_this_process().guard_);
    of_this_process().ends_.erase(data);
  }
  c10::free_cpu(data);
}

}  // namespace

c10::Allocator* pinned_memory() { return &of_this_process(); }

bool is_pinned(const void* address) { return of_this_process().holds(address); }

}  // namespace rehearsal::sim::device
