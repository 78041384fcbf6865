#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rehearsal::real {

// Where a worker listens: a numeric address or a host name, and a port. An empty host: all
// addresses of this machine.
struct Address {
  std::string host;
  uint16_t port = 0;
  bool operator==(const Address&) const = default;
};

// "host:port", with brackets around an IPv6 address.
[[nodiscard]] std::string to_string(const Address& address);

// Reads what `to_string` writes; nothing if it is none. The port may be 0.
[[nodiscard]] std::optional<Address> parse_address(std::string_view text);

// A host without the brackets that people write around an IPv6 address: "[::1]" is "::1".
[[nodiscard]] std::string without_brackets(std::string host);

}  // namespace rehearsal::real
