#pragma once

#include <cstdint>
#include <string>

namespace rehearsal::endurance {

// What this process holds.
struct Holdings {
  uint64_t descriptors = 0;
  uint64_t threads = 0;
  uint64_t allocated_bytes = 0;
  uint64_t resident_bytes = 0;  // once what is free has been given back

  [[nodiscard]] static Holdings now();
};

[[nodiscard]] std::string to_string(const Holdings& holdings);

}  // namespace rehearsal::endurance
