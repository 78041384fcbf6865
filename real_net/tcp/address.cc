#include "real_net/tcp/address.h"

#include <charconv>

namespace rehearsal::real {
namespace {

constexpr size_t kHostBytesMax = 255;  // of a name in the domain name system

}  // namespace

std::string to_string(const Address& address) {
  const bool brackets =
      address.host.find(':') != std::string::npos && !address.host.starts_with('[');
  return (brackets ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

std::optional<Address> parse_address(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  const bool brackets = host.starts_with('[') && host.ends_with(']');
  if (brackets) host = host.substr(1, host.size() - 2);
  if (host.empty() || host.size() > kHostBytesMax) return std::nullopt;
  if (!brackets && host.find(':') != std::string_view::npos) return std::nullopt;
  uint16_t port = 0;
  const char* last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, port);
  if (error != std::errc() || end != last) return std::nullopt;
  return Address{std::string(host), port};
}

std::string without_brackets(std::string host) {
  if (host.size() < 2 || !host.starts_with('[') || !host.ends_with(']')) return host;
  return host.substr(1, host.size() - 2);
}

}  // namespace rehearsal::real
