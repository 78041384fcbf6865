#include "real_net/tcp/socket.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <system_error>

#include "core/base/check.h"

namespace rehearsal::real {
namespace {

constexpr int kBacklog = 1024;
constexpr size_t kHostBytesMax = 255;  // of a name in the domain name system
constexpr char kLoopback[] = "127.0.0.1";

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Error network_error(std::string text) {
  Error error;
  error.kind = ErrorKind::protocol;
  error.text = std::move(text);
  return error;
}

Result<AddressList> resolve(const Address& address, int type, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = type;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  const char* host = address.host.empty() ? nullptr : address.host.c_str();
  const int status = getaddrinfo(host, port.c_str(), &hints, &found);
  const int error = errno;
  if (status == EAI_SYSTEM && is_shortage(error)) return shortage_error(error);
  if (status != 0)
    return network_error("host '" + address.host + "' is not known: " + gai_strerror(status));
  return AddressList(found, &freeaddrinfo);
}

void set_option(int fd, int level, int name, int value) {
  // Only makes things better: a system that lacks the option works without it.
  [[maybe_unused]] const int status = setsockopt(fd, level, name, &value, sizeof value);
}

std::optional<std::string> first_interface_address() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, &freeifaddrs);
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    if ((entry->ifa_flags & IFF_UP) == 0 || (entry->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char host[NI_MAXHOST];
    if (getnameinfo(entry->ifa_addr, sizeof(sockaddr_in), host, sizeof host, nullptr, 0,
                    NI_NUMERICHOST) == 0)
      return std::string(host);
  }
  return std::nullopt;
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

std::string to_string(const Address& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
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

Result<FileDescriptor> listen_on(const Address& address) {
  Result<AddressList> found = resolve(address, SOCK_STREAM, AI_PASSIVE);
  if (!found.ok()) return found.error();
  const addrinfo& first = *found.value();
  FileDescriptor fd(
      socket(first.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, first.ai_protocol));
  if (!fd.valid() && is_shortage(errno)) return shortage_error(errno);
  if (!fd.valid()) return network_error("no socket to listen with: " + errno_text(errno));
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(fd.get(), first.ai_addr, first.ai_addrlen) != 0 || listen(fd.get(), kBacklog) != 0) {
    const int error = errno;
    std::string text = "cannot listen on " + to_string(address) + ": " + errno_text(error);
    if (error == EADDRINUSE) text += "; choose another port, or end the program that has it";
    return network_error(std::move(text));
  }
  return fd;
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

namespace {

// Of the kernel's form of an address.
Address numeric_address(const sockaddr_storage& storage, socklen_t length) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const int named = getnameinfo(reinterpret_cast<const sockaddr*>(&storage), length, host,
                                sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  REHEARSAL_CHECK(named == 0, gai_strerror(named));
  return {host, static_cast<uint16_t>(std::stoi(port))};
}

}  // namespace

Address local_address(const FileDescriptor& socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  const int status = getsockname(socket.get(), reinterpret_cast<sockaddr*>(&storage), &length);
  REHEARSAL_CHECK(status == 0, errno);
  return numeric_address(storage, length);
}

std::optional<Address> peer_address(const FileDescriptor& socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (getpeername(socket.get(), reinterpret_cast<sockaddr*>(&storage), &length) != 0)
    return std::nullopt;
  return numeric_address(storage, length);
}

bool stays_here(const FileDescriptor& socket) {
  const std::optional<Address> other = peer_address(socket);
  return other && (is_loopback(other->host) || other->host == local_address(socket).host);
}

bool is_numeric(const std::string& host) {
  return resolve({.host = host, .port = 0}, SOCK_STREAM, AI_NUMERICHOST).ok();
}

Result<Address> numeric_address_of(const Address& address) {
  const Result<AddressList> found = resolve(address, SOCK_STREAM, 0);
  if (!found.ok()) return found.error();
  sockaddr_storage storage{};
  const addrinfo& first = *found.value();
  std::memcpy(&storage, first.ai_addr, first.ai_addrlen);
  return numeric_address(storage, first.ai_addrlen);
}

Result<FileDescriptor> begin_connect(const Address& address) {
  Result<AddressList> found = resolve(address, SOCK_STREAM, AI_NUMERICHOST);
  if (!found.ok()) return found.error();
  int error = 0;
  for (const addrinfo* entry = found.value().get(); entry != nullptr; entry = entry->ai_next) {
    FileDescriptor fd(
        socket(entry->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, entry->ai_protocol));
    if (!fd.valid()) {
      error = errno;
      continue;
    }
    if (connect(fd.get(), entry->ai_addr, entry->ai_addrlen) == 0 || errno == EINPROGRESS)
      return fd;
    error = errno;
  }
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
  Result<AddressList> found = resolve(address, SOCK_STREAM, 0);
  if (!found.ok() && found.error().kind == ErrorKind::overloaded) return found.error();
  if (!found.ok()) return failed(found.error().text);
  std::string why;
  for (const addrinfo* entry = found.value().get(); entry != nullptr; entry = entry->ai_next) {
    FileDescriptor fd(
        socket(entry->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, entry->ai_protocol));
    if (!fd.valid() && is_shortage(errno)) return shortage_error(errno);
    const bool begun = fd.valid() && (connect(fd.get(), entry->ai_addr, entry->ai_addrlen) == 0 ||
                                      errno == EINPROGRESS);
    if (!begun) {
      why = errno_text(errno);
    } else if (!wait_writable(fd.get(), deadline)) {
      why = "nothing there answers";
    } else if (const int error = connect_result(fd.get()); error != 0) {
      why = errno_text(error);
    } else {
      return fd;
    }
  }
  return failed("cannot connect to " + to_string(address) + ": " + why);
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

bool is_loopback(const std::string& host) {
  return host == "localhost" || host.starts_with("127.") || host == "::1";
}

std::string address_towards(const Address& remote) {
  std::string chosen = kLoopback;
  Result<AddressList> found = resolve(remote, SOCK_DGRAM, 0);
  if (!found.ok()) return chosen;
  for (const addrinfo* entry = found.value().get(); entry != nullptr; entry = entry->ai_next) {
    // Connecting a datagram socket sends nothing; it only chooses the route.
    const FileDescriptor fd(socket(entry->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!fd.valid() || connect(fd.get(), entry->ai_addr, entry->ai_addrlen) != 0) continue;
    chosen = local_address(fd).host;
    break;
  }
  if (!is_loopback(chosen) || is_loopback(remote.host)) return chosen;
  return first_interface_address().value_or(chosen);
}

}  // namespace rehearsal::real
