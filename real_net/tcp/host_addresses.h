#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "core/base/result.h"
#include "real_net/tcp/address.h"

namespace rehearsal::real {

// Hosts as people name them, and the addresses of either family that they have.

using Addresses = std::vector<Address>;

// All addresses of a host, numeric, each once, in the order in which the system's resolver wants
// them tried; that may take long. Never none. Of an empty host: all of this machine, of both
// families, and then of the older one.
[[nodiscard]] Result<Addresses> numeric_addresses_of(const Address& address);

// Whether it is an address as the kernel knows it, and no name.
[[nodiscard]] bool is_numeric(const std::string& host);

// Whether a host is this machine as only itself knows it: `localhost`, or a numeric address.
[[nodiscard]] bool is_loopback(const std::string& host);

// Whether it stands for all addresses of this machine.
[[nodiscard]] bool is_anywhere(const std::string& host);

// A numeric address in the kernel's form.
struct KernelAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  [[nodiscard]] int family() const { return storage.ss_family; }
  [[nodiscard]] const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
[[nodiscard]] Result<KernelAddress> kernel_address_of(const Address& numeric);
[[nodiscard]] Address numeric_address(const KernelAddress& address);

}  // namespace rehearsal::real
