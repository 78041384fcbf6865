#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/base/time.h"
#include "real_net/runtime/file_descriptor.h"

namespace rehearsal::real {

// Where a worker listens: a numeric address or a host name, and a port.
struct Address {
  std::string host;
  uint16_t port = 0;
  bool operator==(const Address&) const = default;
};

// "host:port", with brackets around an IPv6 address.
[[nodiscard]] std::string to_string(const Address& address);

// Reads what `to_string` writes; nothing if it is none. The port may be 0.
[[nodiscard]] std::optional<Address> parse_address(std::string_view text);

struct KeepAlive {
  Duration idle = std::chrono::seconds(10);     // before the first probe
  Duration interval = std::chrono::seconds(5);  // between probes
  int probes = 3;
  // Sent data that is not acknowledged for so long ends the connection.
  Duration user_timeout = std::chrono::seconds(15);
};

// A non-blocking socket that listens. Port 0: any free one. The error names the address.
[[nodiscard]] Result<FileDescriptor> listen_on(const Address& address);

// Where a listening socket listens.
[[nodiscard]] Address local_address(const FileDescriptor& socket);

// Begins to connect; the socket becomes writable when that has ended (see connect_result). Looks up
// a host name with the system's resolver, which may take a while for names that are not local.
[[nodiscard]] Result<FileDescriptor> begin_connect(const Address& address);

// How a connect has ended: 0 or an errno.
[[nodiscard]] int connect_result(int fd);

// No delay, keep-alive.
void set_stream_options(int fd, const KeepAlive& keep_alive);

// Whether a host is this machine as only itself knows it.
[[nodiscard]] bool is_loopback(const std::string& host);

// The address of this machine that others reach it by who are where `remote` is. A machine often
// knows its own name as a loopback address: then the first address of its other interfaces.
[[nodiscard]] std::string address_towards(const Address& remote);

[[nodiscard]] std::string errno_text(int error);

}  // namespace rehearsal::real
