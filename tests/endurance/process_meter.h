#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace rehearsal::endurance {

// The resources that this process holds.
struct Holdings {
  std::map<std::string, uint64_t> descriptors;  // by kind: socket, anon_inode:[eventpoll], files
  uint64_t threads = 0;
  uint64_t allocated_bytes = 0;
  uint64_t resident_bytes = 0;  // once what is free has been given back

  [[nodiscard]] static Holdings now();
};

// The memory that living threads keep at hand counts as allocated.
inline constexpr uint64_t kAllocatedSlack = uint64_t{1} << 20;

[[nodiscard]] std::string to_string(const Holdings& holdings);

}  // namespace rehearsal::endurance
