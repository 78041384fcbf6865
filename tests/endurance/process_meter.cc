#include "tests/endurance/process_meter.h"

#include <malloc.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace rehearsal::endurance {
namespace {

uint64_t entries(const char* folder) {
  using Iterator = std::filesystem::directory_iterator;
  return static_cast<uint64_t>(std::distance(Iterator(folder), Iterator()));
}

// Sockets and pipes all count as one kind, whatever their inode is.
std::map<std::string, uint64_t> descriptors() {
  std::map<std::string, uint64_t> kinds;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    std::string kind = std::filesystem::read_symlink(entry.path(), gone).string();
    const size_t inode = kind.find(":[");
    const bool numbered = inode != std::string::npos && !kind.starts_with("anon_inode");
    ++kinds[numbered ? kind.substr(0, inode) : kind];
  }
  return kinds;
}

}  // namespace

Holdings Holdings::now() {
  malloc_trim(0);
  const struct mallinfo2 heap = mallinfo2();
  uint64_t all_pages = 0;
  uint64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> all_pages >> resident_pages;
  return {.descriptors = endurance::descriptors(),
          .threads = entries("/proc/self/task"),
          .allocated_bytes = heap.uordblks + heap.hblkhd,
          .resident_bytes = resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE))};
}

std::string to_string(const Holdings& holdings) {
  std::string kinds;
  for (const auto& [kind, count] : holdings.descriptors)
    kinds += std::to_string(count) + " " + kind + ", ";
  return kinds + std::to_string(holdings.threads) + " threads, " +
         std::to_string(holdings.allocated_bytes >> 10) + " KiB allocated, " +
         std::to_string(holdings.resident_bytes >> 10) + " KiB resident";
}

}  // namespace rehearsal::endurance
