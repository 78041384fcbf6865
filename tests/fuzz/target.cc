#include "tests/fuzz/target.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <iterator>

namespace rehearsal::fuzz {

const std::vector<Target>& targets() {
  static const std::vector<Target> all = [] {
    std::vector<Target> list = network_targets();
    for (const auto& more : {value_targets(), file_targets(), word_targets()})
      list.insert(list.end(), more.begin(), more.end());
    list.push_back(node_target());
    return list;
  }();
  return all;
}

void must(bool holds, std::string_view promise) {
  if (holds) return;
  std::cerr << "broken: " << promise << std::endl;
  std::abort();
}

uint64_t Input::number(size_t bytes) {
  uint64_t number = 0;
  const size_t there = std::min(bytes, left_.size());
  if (there > 0) std::memcpy(&number, left_.data(), there);
  left_ = left_.subspan(there);
  return number;
}

std::string Input::text(size_t bytes) {
  const size_t there = std::min(bytes, left_.size());
  const std::string text(reinterpret_cast<const char*>(left_.data()), there);
  left_ = left_.subspan(there);
  return text;
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

MemoryFile::MemoryFile()
    : descriptor_(memfd_create("input", MFD_CLOEXEC)),
      path_("/proc/self/fd/" + std::to_string(descriptor_)) {
  must(descriptor_ >= 0, "the system gives a file in memory");
}

MemoryFile::~MemoryFile() { close(descriptor_); }

void MemoryFile::set(std::string_view contents) {
  must(ftruncate(descriptor_, 0) == 0, "a file in memory can be emptied");
  const ssize_t written = pwrite(descriptor_, contents.data(), contents.size(), 0);
  must(written == static_cast<ssize_t>(contents.size()), "a file in memory can be written");
}

}  // namespace rehearsal::fuzz
