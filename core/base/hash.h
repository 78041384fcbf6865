#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace rehearsal {

// A 128-bit hash that names a place in a program: wide enough that two places never meet.
struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  auto operator<=>(const Hash128&) const = default;
};

// Mixes one word: the finaliser of SplitMix64 (Steele, Lea, Flood 2014). Bijective.
constexpr uint64_t mix(uint64_t word) {
  word += 0x9e3779b97f4a7c15ULL;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
  return word ^ (word >> 31);
}

constexpr uint64_t mix(uint64_t first, uint64_t second) { return mix(mix(first) ^ second); }

constexpr Hash128 mix(Hash128 first, uint64_t second) {
  const uint64_t high = mix(first.high, second);
  return {high, mix(first.low ^ high, second + 0x5851f42d4c957f2dULL)};
}

// The same for equal text on every machine. FNV-1a with a final mix; for names, not for data.
constexpr uint64_t hash_text(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char letter : text) hash = (hash ^ static_cast<uint8_t>(letter)) * 0x100000001b3ULL;
  return mix(hash);
}

// XXH3 (xxhash) of bytes, for checksums and digests of data.
[[nodiscard]] uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed = 0);

}  // namespace rehearsal
