#include "sim/world/fingerprint.h"

#include <array>

namespace rehearsal::sim {

std::string to_hex(const Hash128& hash) {
  constexpr std::array kDigits = {'0', '1', '2', '3', '4', '5', '6', '7',
                                  '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
  std::string text;
  for (const uint64_t half : {hash.high, hash.low})
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[half >> shift & 15];
  return text;
}

}  // namespace rehearsal::sim
