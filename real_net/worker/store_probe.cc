#include "real_net/worker/store_probe.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

// The wheel is built with these, and c10d's headers ask for them.
#define USE_DISTRIBUTED
#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/TCPStoreBackend.hpp>

#include "real_net/tcp/host_addresses.h"

namespace rehearsal::real {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kNonce = 0x72656865;  // any number: a store gives it back

Error failure(ErrorKind kind, std::string text) { return {.kind = kind, .text = std::move(text)}; }

// The bytes that open a conversation, and the question that is answered by the number in it.
std::string greeting() {
  std::string bytes;
  const auto append = [&bytes](const auto& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  append(c10d::detail::QueryType::VALIDATE);
  append(c10d::detail::validationMagicNumber);
  append(c10d::detail::QueryType::PING);
  append(kNonce);
  return bytes;
}

std::string printable(const char* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += bytes[i] >= ' ' && bytes[i] < 127 ? bytes[i] : '.';
  return text;
}

// The same of one numeric address.
Status ask_at(const Address& address, Clock::time_point deadline) {
  Result<FileDescriptor> socket = connect_within(address, deadline);
  if (!socket.ok()) return socket.error();
  const int fd = socket.value().get();
  const std::string question = greeting();
  // So few bytes always fit into a socket's buffer.
  if (send(fd, question.data(), question.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(question.size()))
    return failure(ErrorKind::peer_lost, "it hung up at once");
  std::array<char, sizeof kNonce> answer{};
  size_t have = 0;
  while (have < answer.size()) {
    if (!wait_readable(fd, deadline))
      return failure(ErrorKind::timeout, "it takes connections and says nothing");
    const ssize_t count = recv(fd, answer.data() + have, answer.size() - have, 0);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return failure(ErrorKind::peer_lost, "it hung up: " + errno_text(errno));
    if (count == 0) return failure(ErrorKind::peer_lost, "it hung up without an answer");
    have += static_cast<size_t>(count);
  }
  uint32_t number = 0;
  std::memcpy(&number, answer.data(), sizeof number);
  if (number == kNonce) return Unit{};
  return failure(ErrorKind::protocol, "it answers '" + printable(answer.data(), answer.size()) +
                                          "…', as no store of LibTorch does");
}

}  // namespace

Result<Address> ask_store(const Address& address, Clock::time_point deadline) {
  const Result<Addresses> places = numeric_addresses_of(address);
  if (!places.ok() && places.error().kind == ErrorKind::overloaded) return places.error();
  if (!places.ok()) return failure(ErrorKind::peer_lost, places.error().text);
  Error why;
  auto left = static_cast<int64_t>(places.value().size());
  for (const Address& place : places.value()) {
    const auto now = Clock::now();
    const Status asked = ask_at(place, now + (deadline - now) / left--);
    if (asked.ok()) return place;
    // Somebody who answers wrongly, or not at all, tells more than nobody.
    const bool is_first = &place == &places.value().front();
    if (is_first || asked.error().kind != ErrorKind::peer_lost) why = asked.error();
    if (why.kind == ErrorKind::overloaded) break;
  }
  return why;
}

}  // namespace rehearsal::real
