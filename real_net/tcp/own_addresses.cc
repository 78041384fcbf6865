#include "real_net/tcp/own_addresses.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "real_net/tcp/host_addresses.h"
#include "real_net/tcp/socket.h"

namespace rehearsal::real {
namespace {

constexpr char kLoopback[] = "127.0.0.1";
constexpr size_t kHostNameMax = 256;

std::string_view first_label(std::string_view name) { return name.substr(0, name.find('.')); }

bool is_called(const std::string& name) {
  std::array<char, kHostNameMax> own{};
  if (gethostname(own.data(), own.size() - 1) != 0) return false;
  const std::string_view ours = first_label(own.data());
  const std::string_view theirs = first_label(name);
  return std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  });
}

bool all_loopback(const Addresses& addresses) {
  return std::all_of(addresses.begin(), addresses.end(),
                     [](const Address& one) { return is_loopback(one.host); });
}

// Of a name that stands for loopback here: whether others know it as another address.
bool may_be_own_name(const std::string& host, bool for_others) {
  return !is_numeric(host) && host != "localhost" && (for_others || is_called(host));
}

// The address of an interface, if it is up, and others may reach it there.
std::optional<std::string> usable_address(const ifaddrs& entry, int family) {
  if (entry.ifa_addr == nullptr || entry.ifa_addr->sa_family != family) return std::nullopt;
  if ((entry.ifa_flags & IFF_UP) == 0 || (entry.ifa_flags & IFF_LOOPBACK) != 0) return std::nullopt;
  KernelAddress address;
  address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::memcpy(&address.storage, entry.ifa_addr, address.length);
  if (family == AF_INET6) {
    sockaddr_in6 six{};
    std::memcpy(&six, entry.ifa_addr, sizeof six);
    if (IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr)) return std::nullopt;
  }
  return numeric_address(address).host;
}

std::optional<std::string> first_interface_address() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, &freeifaddrs);
  for (const int family : {AF_INET, AF_INET6})
    for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next)
      if (auto address = usable_address(*entry, family)) return address;
  return std::nullopt;
}

// A datagram socket may be bound to every address that this machine has, and to no other.
bool is_of_this_machine(const Address& numeric) {
  const Result<KernelAddress> place = kernel_address_of({.host = numeric.host, .port = 0});
  if (!place.ok()) return false;
  const FileDescriptor fd(socket(place.value().family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return fd.valid() && bind(fd.get(), place.value().data(), place.value().length) == 0;
}

// The address from which datagrams to any of these would leave, if one would.
std::optional<std::string> address_on_the_way(const Addresses& remote) {
  for (const Address& one : remote) {
    const Result<KernelAddress> place = kernel_address_of(one);
    if (!place.ok()) continue;
    // Connecting a datagram socket sends nothing; it only chooses the route.
    const FileDescriptor fd(socket(place.value().family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd.valid() && connect(fd.get(), place.value().data(), place.value().length) == 0)
      return local_address(fd).host;
  }
  return std::nullopt;
}

}  // namespace

bool stays_on_this_machine(const Address& named, bool for_others) {
  if (is_loopback(named.host)) return true;
  const Result<Addresses> found = numeric_addresses_of(named);
  return found.ok() && all_loopback(found.value()) && !may_be_own_name(named.host, for_others);
}

std::string address_towards(const Address& remote, bool for_others) {
  const Result<Addresses> found = numeric_addresses_of(remote);
  if (!found.ok()) return kLoopback;
  const std::string chosen = address_on_the_way(found.value()).value_or(kLoopback);
  if (!is_loopback(chosen) || !may_be_own_name(remote.host, for_others)) return chosen;
  return first_interface_address().value_or(chosen);
}

Result<FileDescriptor> listen_as(const Address& named, bool for_others) {
  const Result<Addresses> found = numeric_addresses_of(named);
  if (!found.ok()) return found.error();
  if (all_loopback(found.value()) && !may_be_own_name(named.host, for_others))
    return listen_on(named);
  const Address& first = found.value().front();
  const bool is_one = found.value().size() == 1 && !is_loopback(first.host);
  if (is_one && is_of_this_machine(first)) return listen_on(first);
  return listen_on({.host = "", .port = named.port});
}

}  // namespace rehearsal::real
