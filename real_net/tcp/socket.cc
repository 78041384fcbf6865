#include "real_net/tcp/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

#include "core/base/check.h"
#include "real_net/tcp/host_addresses.h"

namespace rehearsal::real {
namespace {

constexpr int kBacklog = 1024;

void set_option(int fd, int level, int name, int value) {
  // Only makes things better: a system that lacks the option works without it.
  [[maybe_unused]] const int status = setsockopt(fd, level, name, &value, sizeof value);
}

bool wait_for(int fd, short events, std::chrono::steady_clock::time_point deadline) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd polled{.fd = fd, .events = events, .revents = 0};
    const auto limit = std::clamp<int64_t>(left.count(), 0, 1'000'000);
    const int ready = poll(&polled, 1, static_cast<int>(limit));
    if (ready > 0) return true;
    if (ready == 0 && left.count() <= limit) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

// A socket for this address; the error as `errno` has it.
FileDescriptor socket_for(const KernelAddress& address) {
  return FileDescriptor(socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Zero: it listens, else an errno.
int listen_at(const KernelAddress& address, FileDescriptor& fd) {
  fd = socket_for(address);
  if (!fd.valid()) return errno;
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.family() == AF_INET6) set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(fd.get(), address.data(), address.length) != 0) return errno;
  return listen(fd.get(), kBacklog) == 0 ? 0 : errno;
}

// Whether another address of the same host may do.
bool is_not_ours(int error) { return error == EADDRNOTAVAIL || error == EAFNOSUPPORT; }

int whole_seconds(Duration duration) {
  return static_cast<int>(std::chrono::ceil<std::chrono::seconds>(duration).count());
}

}  // namespace

std::string errno_text(int error) { return std::generic_category().message(error); }

bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

Error shortage_error(int error) {
  Error shortage;
  shortage.kind = ErrorKind::overloaded;
  shortage.text = "no connection can be made or taken: " + errno_text(error);
  rlimit limit{};
  if (error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
    shortage.text += " (this process may have " + std::to_string(limit.rlim_cur) +
                     " descriptors; raise that with ulimit -n)";
  return shortage;
}

Error watch_error() {
  return {.kind = ErrorKind::overloaded,
          .text =
              "no connection can be watched: the kernel has no room for another (see "
              "/proc/sys/fs/epoll/max_user_watches)"};
}

Error network_error(std::string text) {
  Error error;
  error.kind = ErrorKind::protocol;
  error.text = std::move(text);
  return error;
}

Result<FileDescriptor> listen_on(const Address& address) {
  const Result<Addresses> found = numeric_addresses_of(address);
  if (!found.ok()) return found.error();
  int error = EADDRNOTAVAIL;
  for (const Address& one : found.value()) {
    const Result<KernelAddress> place = kernel_address_of(one);
    if (!place.ok()) return place.error();
    FileDescriptor fd;
    error = listen_at(place.value(), fd);
    if (error == 0) return fd;
    if (!is_not_ours(error)) break;
  }
  if (is_shortage(error)) return shortage_error(error);
  std::string text = "cannot listen on " + to_string(address) + ": " + errno_text(error);
  if (error == EADDRINUSE) text += "; choose another port, or end the program that has it";
  return network_error(std::move(text));
}

Result<FileDescriptor> listening_socket(int descriptor) {
  int listens = 0;
  socklen_t size = sizeof listens;
  if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0)
    return network_error("descriptor " + std::to_string(descriptor) +
                         ", which it was given, is no socket that listens");
  FileDescriptor fd(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return shortage_error(errno);
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
  return fd;
}

Address local_address(const FileDescriptor& socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  const int status = getsockname(socket.get(), reinterpret_cast<sockaddr*>(&storage), &length);
  REHEARSAL_CHECK(status == 0, errno);
  return numeric_address({storage, length});
}

std::optional<Address> peer_address(const FileDescriptor& socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (getpeername(socket.get(), reinterpret_cast<sockaddr*>(&storage), &length) != 0)
    return std::nullopt;
  return numeric_address({storage, length});
}

bool stays_here(const FileDescriptor& socket) {
  const std::optional<Address> other = peer_address(socket);
  return other && (is_loopback(other->host) || other->host == local_address(socket).host);
}

Result<FileDescriptor> begin_connect(const Address& address) {
  const Result<KernelAddress> place = kernel_address_of(address);
  if (!place.ok()) return place.error();
  FileDescriptor fd = socket_for(place.value());
  if (fd.valid() &&
      (connect(fd.get(), place.value().data(), place.value().length) == 0 || errno == EINPROGRESS))
    return fd;
  const int error = errno;
  if (is_shortage(error)) return shortage_error(error);
  return network_error("cannot connect to " + to_string(address) + ": " + errno_text(error));
}

bool wait_readable(int fd, std::chrono::steady_clock::time_point deadline) {
  return wait_for(fd, POLLIN, deadline);
}

bool wait_writable(int fd, std::chrono::steady_clock::time_point deadline) {
  return wait_for(fd, POLLOUT, deadline);
}

Result<FileDescriptor> connect_within(const Address& address,
                                      std::chrono::steady_clock::time_point deadline) {
  const auto failed = [](std::string text) {
    return Error{.kind = ErrorKind::peer_lost, .text = std::move(text)};
  };
  const Result<Addresses> found = numeric_addresses_of(address);
  if (!found.ok() && found.error().kind == ErrorKind::overloaded) return found.error();
  if (!found.ok()) return failed(found.error().text);
  std::string why;
  auto left = static_cast<int64_t>(found.value().size());
  for (const Address& one : found.value()) {
    const auto now = std::chrono::steady_clock::now();
    const auto limit = now + (deadline - now) / left--;
    Result<FileDescriptor> begun = begin_connect(one);
    if (!begun.ok() && begun.error().kind == ErrorKind::overloaded) return begun.error();
    if (!begun.ok()) {
      why = begun.error().text;
    } else if (!wait_writable(begun.value().get(), limit)) {
      why = "cannot connect to " + to_string(one) + ": nothing there answers";
    } else if (const int error = connect_result(begun.value().get()); error != 0) {
      why = "cannot connect to " + to_string(one) + ": " + errno_text(error);
    } else {
      return begun;
    }
  }
  return failed(why);
}

bool is_refused(const Address& address, std::chrono::steady_clock::time_point deadline) {
  const Result<Addresses> found = numeric_addresses_of(address);
  if (!found.ok()) return false;
  return std::all_of(found.value().begin(), found.value().end(), [&](const Address& one) {
    const Result<KernelAddress> place = kernel_address_of(one);
    if (!place.ok()) return false;
    const FileDescriptor fd = socket_for(place.value());
    if (!fd.valid()) return false;
    if (connect(fd.get(), place.value().data(), place.value().length) == 0) return false;
    if (errno == ECONNREFUSED) return true;
    return errno == EINPROGRESS && wait_writable(fd.get(), deadline) &&
           connect_result(fd.get()) == ECONNREFUSED;
  });
}

int connect_result(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

void set_stream_options(int fd, const KeepAlive& keep_alive) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, whole_seconds(keep_alive.idle));
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, whole_seconds(keep_alive.interval));
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, keep_alive.probes);
  const auto timeout = std::chrono::ceil<std::chrono::milliseconds>(keep_alive.user_timeout);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(timeout.count()));
}

}  // namespace rehearsal::real
