#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

namespace rehearsal {

// Bytes as a broken disk or a hostile hand leaves them: one to four of these, drawn: the end is cut
// off, bits are flipped, bytes are drawn anew, numbers of one to eight bytes become 0, the largest,
// the largest that is not negative, one more or less, or the length; a piece is left out, doubled
// or put elsewhere.
inline std::string mutated(std::string bytes, std::mt19937_64& random) {
  const auto below = [&random](size_t limit) { return limit == 0 ? 0 : random() % limit; };
  const auto overwrite = [&](uint64_t value) {
    const size_t width = size_t{1} << below(4);
    if (bytes.size() < width) return;
    std::memcpy(&bytes[below(bytes.size() - width + 1)], &value, width);
  };
  for (uint64_t left = 1 + below(4); left > 0; --left) {
    if (bytes.empty()) return bytes;
    const size_t at = below(bytes.size());
    const size_t length = std::min(bytes.size() - at, 1 + below(64));
    switch (below(9)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 2:
        for (size_t i = 0; i < std::min<size_t>(length, 8); ++i)
          bytes[at + i] = static_cast<char>(random());
        break;
      case 3:
        overwrite(std::array<uint64_t, 5>{0, UINT64_MAX, INT64_MAX, INT32_MAX,
                                          0x7f7f7f7f7f7f7f7f}[below(5)]);
        break;
      case 4:
        overwrite(bytes.size() + below(3) - 1);
        break;
      case 5:
        bytes[at] = static_cast<char>(bytes[at] + (below(2) == 0 ? 1 : -1));
        break;
      case 6:
        bytes.erase(at, length);
        break;
      case 7:
        bytes.insert(below(bytes.size()), bytes.substr(at, length));
        break;
      default:
        bytes.replace(at, length, bytes.substr(below(bytes.size()), length));
    }
  }
  return bytes;
}

}  // namespace rehearsal
