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
    if (data != nullptr) add(data, bytes);
    return {data, data, &PinnedMemory::end, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &PinnedMemory::end; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

  void add(void* begin, size_t bytes) {
    const std::scoped_lock lock(guard_);
    Piece& piece = pieces_[begin];
    piece.end = static_cast<char*>(begin) + bytes;
    ++piece.uses;
  }
  void remove(void* begin) {
    const std::scoped_lock lock(guard_);
    const auto piece = pieces_.find(begin);
    if (--piece->second.uses == 0) pieces_.erase(piece);
  }
  bool holds(const void* address) {
    const std::scoped_lock lock(guard_);
    const auto behind = pieces_.upper_bound(const_cast<void*>(address));
    return behind != pieces_.begin() && address < std::prev(behind)->second.end;
  }

 private:
  static void end(void* data);

  struct Piece {
    const char* end = nullptr;
    int uses = 0;
  };
  std::mutex guard_;
  std::map<void*, Piece> pieces_;  // by where they begin
};

PinnedMemory& of_this_process() {
  static auto* memory = new PinnedMemory;  // outlives the last tensor
  return *memory;
}

void PinnedMemory::end(void* data) {
  if (data == nullptr) return;
  of_this_process().remove(data);
  c10::free_cpu(data);
}

}  // namespace

c10::Allocator* pinned_memory() { return &of_this_process(); }

bool is_pinned(const void* address) { return of_this_process().holds(address); }

PinnedRange::PinnedRange(void* begin, size_t bytes) : begin_(begin) {
  of_this_process().add(begin, bytes);
}
PinnedRange::~PinnedRange() { of_this_process().remove(begin_); }

}  // namespace rehearsal::sim::device
