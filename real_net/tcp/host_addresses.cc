#include "real_net/tcp/host_addresses.h"

#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "core/base/check.h"
#include "real_net/tcp/socket.h"

namespace rehearsal::real {
namespace {

constexpr uint32_t kLoopbackNet = 127;  // the first byte of such an address

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<AddressList> resolve(const Address& address, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  const std::string host = without_brackets(address.host);
  const int status = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  const int error = errno;
  if (status == EAI_SYSTEM && is_shortage(error)) return shortage_error(error);
  if (status != 0)
    return network_error("host '" + address.host + "' is not known: " + gai_strerror(status));
  return AddressList(found, &freeaddrinfo);
}

KernelAddress kernel_address(const addrinfo& entry) {
  KernelAddress address;
  std::memcpy(&address.storage, entry.ai_addr, entry.ai_addrlen);
  address.length = entry.ai_addrlen;
  return address;
}

bool is_loopback_address(const KernelAddress& address) {
  if (address.family() == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, &address.storage, sizeof four);
    return ntohl(four.sin_addr.s_addr) >> 24 == kLoopbackNet;
  }
  sockaddr_in6 six{};
  std::memcpy(&six, &address.storage, sizeof six);
  const bool is_mapped = IN6_IS_ADDR_V4MAPPED(&six.sin6_addr);
  return IN6_IS_ADDR_LOOPBACK(&six.sin6_addr) ||
         (is_mapped && six.sin6_addr.s6_addr[12] == kLoopbackNet);
}

}  // namespace

Result<Addresses> numeric_addresses_of(const Address& address) {
  if (address.host.empty()) return Addresses{{"::", address.port}, {"0.0.0.0", address.port}};
  const Result<AddressList> found = resolve(address, 0);
  if (!found.ok()) return found.error();
  Addresses all;
  for (const addrinfo* entry = found.value().get(); entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    Address one = numeric_address(kernel_address(*entry));
    if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(std::move(one));
  }
  if (all.empty()) return network_error("host '" + address.host + "' has no address");
  return all;
}

Result<KernelAddress> kernel_address_of(const Address& numeric) {
  const Result<AddressList> found = resolve(numeric, AI_NUMERICHOST);
  if (!found.ok()) return found.error();
  return kernel_address(*found.value());
}

Address numeric_address(const KernelAddress& address) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const int named = getnameinfo(address.data(), address.length, host, sizeof host, port,
                                sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  REHEARSAL_CHECK(named == 0, gai_strerror(named));
  return {host, static_cast<uint16_t>(std::stoi(port))};
}

bool is_numeric(const std::string& host) {
  return resolve({.host = host, .port = 0}, AI_NUMERICHOST).ok();
}

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  const Result<KernelAddress> address = kernel_address_of({.host = host, .port = 0});
  return address.ok() && is_loopback_address(address.value());
}

bool is_anywhere(const std::string& host) {
  const std::string bare = without_brackets(host);
  return bare.empty() || bare == "0.0.0.0" || bare == "::";
}

}  // namespace rehearsal::real
