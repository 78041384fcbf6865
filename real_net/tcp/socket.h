#pragma once

#include <sys/socket.h>

#include <chrono>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/base/time.h"
#include "real_net/runtime/file_descriptor.h"
#include "real_net/tcp/address.h"

namespace rehearsal::real {

struct KeepAlive {
  Duration idle = std::chrono::seconds(10);     // before the first probe
  Duration interval = std::chrono::seconds(5);  // between probes
  int probes = 3;
  // Sent data that is not acknowledged for so long ends the connection.
  Duration user_timeout = std::chrono::seconds(15);
};

// Whether an errno says that the system has no descriptor, or no memory, for another socket.
[[nodiscard]] bool is_shortage(int error);

// The error of that, of kind overloaded: it tells the limit, and how to raise it.
[[nodiscard]] Error shortage_error(int error);

// The same where epoll has no room to watch another descriptor.
[[nodiscard]] Error watch_error();

// Any other error of the network, of kind protocol.
[[nodiscard]] Error network_error(std::string text);

// A non-blocking socket that listens at the first of a host's addresses that this machine has; at
// `::`, or for an empty host, at all addresses of both families. Port 0: any free one. Looks up a
// name, which may take long. The error names the address.
[[nodiscard]] Result<FileDescriptor> listen_on(const Address& address);

// The listening socket that a descriptor stands for: another descriptor of it, non-blocking. The
// error says that it is none.
[[nodiscard]] Result<FileDescriptor> listening_socket(int descriptor);

// Where a listening socket listens.
[[nodiscard]] Address local_address(const FileDescriptor& socket);

// Where the other end of a connection is; nothing if it has gone.
[[nodiscard]] std::optional<Address> peer_address(const FileDescriptor& socket);

// Whether a connection leads to this machine, as far as its addresses tell.
[[nodiscard]] bool stays_here(const FileDescriptor& socket);

// Begins to connect to a numeric address; the socket becomes writable when that has ended (see
// connect_result). The error is of kind overloaded if no descriptor is left.
[[nodiscard]] Result<FileDescriptor> begin_connect(const Address& address);

// Connects, and waits for it until `deadline`; tries all addresses of a host in turn, each for its
// share of the time. Looks up a name with the system's resolver, which this deadline does not
// bound. The error says how far it came: of kind overloaded if no descriptor is left, else
// peer_lost.
[[nodiscard]] Result<FileDescriptor> connect_within(const Address& address,
                                                    std::chrono::steady_clock::time_point deadline);

// Whether nobody listens at any of a host's addresses: connections are refused at once. False if
// that cannot be told by `deadline`.
[[nodiscard]] bool is_refused(const Address& address,
                              std::chrono::steady_clock::time_point deadline);

// Waits until a socket can be read from or written to, or has failed; false at `deadline`.
[[nodiscard]] bool wait_readable(int fd, std::chrono::steady_clock::time_point deadline);
[[nodiscard]] bool wait_writable(int fd, std::chrono::steady_clock::time_point deadline);

// How a connect has ended: 0 or an errno.
[[nodiscard]] int connect_result(int fd);

// No delay, keep-alive.
void set_stream_options(int fd, const KeepAlive& keep_alive);

[[nodiscard]] std::string errno_text(int error);

}  // namespace rehearsal::real
