#pragma once

#include <array>
#include <string>
#include <string_view>

namespace rehearsal::real {

using Key = std::array<unsigned char, 32>;

// HMAC-SHA-256 (RFC 2104).
[[nodiscard]] Key hmac(std::string_view key, std::string_view text);

// A key for one purpose that tells nothing of the secret, nor of the keys for others.
[[nodiscard]] Key derive_key(std::string_view secret, std::string_view purpose);

[[nodiscard]] inline std::string_view view(const Key& key) {
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

}  // namespace rehearsal::real
