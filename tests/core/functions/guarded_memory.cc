#include "tests/core/functions/guarded_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>

namespace rehearsal {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kAlignmentMax = 64;

// Of each allocation; a deleter gets nothing but the data.
struct Mapping {
  std::byte* start;
  size_t bytes;  // the page that may not be touched included
  uint8_t byte;
};

std::map<void*, Mapping>& mappings() {
  static std::map<void*, Mapping> all;
  return all;
}

size_t in_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

void give_back(void* data) {
  const auto found = mappings().find(data);
  const Mapping mapping = found->second;
  mappings().erase(found);
  if (std::any_of(mapping.start, static_cast<std::byte*>(data),
                  [&](std::byte byte) { return byte != std::byte{mapping.byte}; })) {
    std::fputs("memory before a tensor was written\n", stderr);
    std::abort();
  }
  ::munmap(mapping.start, mapping.bytes);
}

}  // namespace

c10::DataPtr GuardedMemory::allocate(size_t bytes) {
  const c10::Device cpu(c10::DeviceType::CPU);
  if (bytes == 0) return {nullptr, cpu};
  if (bytes > bytes_max_) {
    ++refused_;
    throw std::runtime_error("the test has no such memory");
  }
  const size_t size = in_pages(bytes);
  const size_t mapped = size + kPage;
  void* const mapping =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  auto* const start = static_cast<std::byte*>(mapping);
  ::mprotect(start + size, kPage, PROT_NONE);
  std::memset(start, byte_, size);
  // As close to the end as what lies in it can be aligned.
  const size_t alignment = std::min(kAlignmentMax, size_t{1} << std::countr_zero(bytes));
  auto* const data = start + (size - bytes) / alignment * alignment;
  mappings().emplace(data, Mapping{start, mapped, byte_});
  return {data, data, &give_back, cpu};
}

c10::DeleterFnPtr GuardedMemory::raw_deleter() const { return &give_back; }

void GuardedMemory::copy_data(void* to, const void* from, size_t bytes) const {
  default_copy_data(to, from, bytes);
}

}  // namespace rehearsal
