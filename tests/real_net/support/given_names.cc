#include "tests/real_net/support/given_names.h"

#include <dlfcn.h>
#include <netdb.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "real_net/tcp/socket.h"

namespace {

using Resolver = int (*)(const char*, const char*, const addrinfo*, addrinfo**);

std::vector<const char*> addresses_of(const char* host, const addrinfo* hints) {
  const bool is_name = hints == nullptr || (hints->ai_flags & AI_NUMERICHOST) == 0;
  if (host == nullptr || !is_name) return {};
  if (std::strcmp(host, rehearsal::real::kBothFamilies) == 0) return {"::1", "127.0.0.1"};
  if (std::strcmp(host, rehearsal::real::kNewFamily) == 0) return {"::1"};
  if (rehearsal::real::own_name() == host) return {"127.0.1.1"};
  return {};
}

}  // namespace

// In place of the system's, which it asks for all other names.
extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  const auto system = reinterpret_cast<Resolver>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const std::vector<const char*> addresses = addresses_of(host, hints);
  if (addresses.empty()) return system(host, service, hints, found);
  *found = nullptr;
  addrinfo** end = found;
  for (const char* address : addresses) {
    if (system(address, service, hints, end) != 0) *end = nullptr;
    while (*end != nullptr) end = &(*end)->ai_next;
  }
  return *found == nullptr ? EAI_NONAME : 0;
}

namespace rehearsal::real {

std::string own_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

bool has_ipv6() { return listen_on({.host = "::1", .port = 0}).ok(); }

std::vector<std::string> loopback_hosts() {
  std::vector<std::string> hosts = {"127.0.0.1", "127.0.0.2", "localhost", kBothFamilies};
  if (has_ipv6()) hosts.insert(hosts.end(), {"::1", "[::1]", kNewFamily});
  return hosts;
}

}  // namespace rehearsal::real
