// A port of loopback at which a test, or a process that it starts, will listen later.
//
// A port that the system gives away for a moment may be anybody's the moment after. This one is
// leased for as long as this process lives: it lies below those that the system gives to
// connections (Linux: from 32768), and the name of an abstract socket, which the system takes back
// when its owner ends, keeps every other test of this machine from leasing it, too.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace rehearsal {

constexpr uint16_t kLeasedPortFirst = 20'000;
constexpr uint16_t kLeasedPortCount = 10'000;

// Whether the lease was free. The socket stays open, and so leased, until this process ends.
inline bool lease(uint16_t port) {
  const int name = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;  // An abstract name begins with a zero.
  const int length = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                                   "rehearsal-test-port-%d", static_cast<int>(port));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (bind(name, reinterpret_cast<const sockaddr*>(&address), size) == 0) return true;
  close(name);
  return false;
}

// Whether another program, of whatever kind, listens there.
inline bool is_taken(uint16_t port) {
  const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  const bool taken =
      bind(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(probe, 1) != 0;
  close(probe);
  return taken;
}

// Another one with every call.
inline uint16_t leased_port() {
  // Processes begin at different ones, so that each finds a free lease soon.
  static uint32_t next = static_cast<uint32_t>(getpid()) * 37;
  for (uint32_t tried = 0; tried < kLeasedPortCount; ++tried) {
    const auto port = static_cast<uint16_t>(kLeasedPortFirst + next++ % kLeasedPortCount);
    if (lease(port) && !is_taken(port)) return port;
  }
  ADD_FAILURE() << "no port is free between " << kLeasedPortFirst << " and "
                << kLeasedPortFirst + kLeasedPortCount;
  return 0;
}

}  // namespace rehearsal
